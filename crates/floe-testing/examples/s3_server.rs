//! The S3 server of the tests as a program, for tools that are not Rust.
//!
//!     s3_server ROOT ACCESS_KEY SECRET_KEY
//!
//! Serves the directories under ROOT as buckets, prints its port, and runs until its standard input ends.

use std::io::{Read, Write};

use floe_testing::s3::S3Server;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [root, access_key, secret_key] = args.as_slice() else {
        return Err("usage: s3_server ROOT ACCESS_KEY SECRET_KEY".into());
    };
    let server = S3Server::start(root, access_key, secret_key).await?;
    writeln!(std::io::stdout(), "{}", server.addr().port())?;
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    server.stop().await;
    Ok(())
}
