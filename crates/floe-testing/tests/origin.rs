//! The scripted origin: long keys, conditional reads, objects that change under a reader.

use floe_testing::line::{Fault, FaultKind, FaultMatcher, ScriptedOrigin};
use opendal::ErrorKind;

use crate::support::{client, pattern};

#[tokio::test]
async fn keys_of_1024_bytes_and_of_odd_characters_round_trip() {
    let origin = ScriptedOrigin::start().await.unwrap();
    let bucket = client(&origin.endpoint(), "b");
    let long = "k".repeat(1024);
    for key in [
        long.as_str(),
        "a#b",
        "a%20b",
        "a?b",
        "a b",
        "ü/日本",
        "a+b",
        "a&b=c",
    ] {
        bucket.write(key, key.as_bytes().to_vec()).await.unwrap();
        assert_eq!(
            bucket.read(key).await.unwrap().to_bytes(),
            key.as_bytes(),
            "{key}"
        );
        assert!(origin.object(&format!("b/{key}")).is_some(), "{key}");
    }
}

#[tokio::test]
async fn ranges_and_conditions_are_answered() {
    let origin = ScriptedOrigin::start().await.unwrap();
    let bucket = client(&origin.endpoint(), "b");
    let content = pattern(1000);
    let etag = origin.put("b/k", content.clone());
    let read = bucket
        .read_with("k")
        .range(10..20)
        .if_match(&etag)
        .await
        .unwrap();
    assert_eq!(read.to_bytes(), &content[10..20]);
    let url = format!("{}/b/k", origin.endpoint());
    let suffix = reqwest::Client::new().get(&url).header("range", "bytes=-7");
    let suffix = suffix.send().await.unwrap();
    assert_eq!(suffix.headers()["content-range"], "bytes 993-999/1000");
    assert_eq!(suffix.bytes().await.unwrap(), content[993..]);
    let beyond = reqwest::Client::new()
        .get(&url)
        .header("range", "bytes=1000-1001");
    assert_eq!(beyond.send().await.unwrap().status(), 416);
    assert_eq!(bucket.stat("k").await.unwrap().content_length(), 1000);
    assert_eq!(
        bucket.read("gone").await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[tokio::test]
async fn an_object_overwritten_between_two_reads_refuses_the_second() {
    let origin = ScriptedOrigin::start().await.unwrap();
    let bucket = client(&origin.endpoint(), "b");
    let etag = origin.put("b/k", pattern(1000));
    origin.overwrite_after("b/k", 1, pattern(900));
    assert!(
        bucket
            .read_with("k")
            .range(0..10)
            .if_match(&etag)
            .await
            .is_ok()
    );
    let second = bucket.read_with("k").range(10..20).if_match(&etag).await;
    assert_eq!(second.unwrap_err().kind(), ErrorKind::ConditionNotMatch);
    assert_eq!(origin.object("b/k").unwrap().bytes.len(), 900);
}

#[tokio::test]
async fn it_fails_as_it_is_told_to() {
    let origin = ScriptedOrigin::start().await.unwrap();
    let bucket = client(&origin.endpoint(), "b");
    origin.put("b/k", pattern(1000));
    let matcher = FaultMatcher::new("GET", "/b/k").after(1);
    let fault = origin.inject(Fault::once(matcher, FaultKind::Status(503)));
    assert!(bucket.read("k").await.is_ok());
    assert!(bucket.read("k").await.unwrap_err().is_temporary());
    assert!(bucket.read("k").await.is_ok());
    assert_eq!(origin.faults().struck(fault), 1);
}
