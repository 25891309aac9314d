//! The `floe` command: Iceberg tables over slow lines, from a shell.
//!
//! ```text
//!  args ──▶ verbs/*  a file for each verb ──▶ floe (the SDK) ──▶ output/*  data on stdout
//!              │                                                ui        status and progress on stderr
//!              └──▶ failure  Error: / Caused by: / Hint:, and the exit code
//! ```

mod args;
mod backtraces;
mod context;
mod failure;
mod output;
mod ui;
mod verbs;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use crate::args::Cli;
use crate::context::Context;

fn main() -> ExitCode {
    backtraces::leave_to_panics();
    let cli = Cli::parse();
    log_to_stderr();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            return failure::report(&anyhow::Error::new(error).context("can't start the runtime"));
        }
    };
    let context = Context::new(cli.globals);
    let done = runtime.block_on(verbs::run(&context, cli.verb));
    // What still runs (a fetch nobody waits for) must not hold up the end.
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

/// Logs are for who asks for them: `RUST_LOG` decides, and warnings are always told.
fn log_to_stderr() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
}
