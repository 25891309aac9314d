//! What several topics need: S3 clients by opendal, bytes that tell their place, a seed.

use std::time::Duration;

use opendal::Operator;
use opendal::services::S3;

pub(crate) const KEY: &str = "floe";
pub(crate) const SECRET: &str = "floe-secret";

/// A client of `bucket` at `endpoint`, without retries: a test wants to see the first answer.
pub(crate) fn client(endpoint: &str, bucket: &str) -> Operator {
    let builder = S3::default()
        .endpoint(endpoint)
        .bucket(bucket)
        .region("us-east-1")
        .access_key_id(KEY)
        .secret_access_key(SECRET)
        .disable_config_load()
        .disable_ec2_metadata();
    Operator::new(builder).unwrap().finish()
}

/// Bytes of which no two places look alike for long.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8)
        .collect()
}

/// Fails a test that hangs. Generous: it only has to be shorter than the CI's own limit.
pub(crate) async fn bounded<F: Future>(what: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), what)
        .await
        .expect("the test hangs")
}
