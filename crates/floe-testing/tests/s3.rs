//! The S3 server: what s3s-fs gives, and what is made good here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use floe_testing::s3::S3Server;
use opendal::ErrorKind;

use crate::support::{KEY, SECRET, bounded, client, pattern};

async fn server() -> (tempfile::TempDir, S3Server) {
    let root = tempfile::tempdir().unwrap();
    let server = S3Server::start(root.path(), KEY, SECRET).await.unwrap();
    server.create_bucket("lake").unwrap();
    (root, server)
}

#[tokio::test]
async fn keys_with_odd_characters_round_trip() {
    let (_root, server) = server().await;
    let lake = client(&server.endpoint(), "lake");
    let keys = [
        "a#b",
        "a%b",
        "a%20b",
        "a?b=c",
        "a b",
        "match_id=1/part=ü",
        "日本/ключ",
        "a+b",
        "a&b",
        "a:b",
        "a'b\"c",
        "x/y/z",
    ];
    for key in keys {
        lake.write(key, key.as_bytes().to_vec()).await.unwrap();
    }
    for key in keys {
        let read = lake.read(key).await.unwrap();
        assert_eq!(read.to_bytes(), key.as_bytes(), "{key}");
        assert_eq!(
            lake.stat(key).await.unwrap().content_length(),
            key.len() as u64
        );
    }
    let mut listed = lake.list_with("").recursive(true).await.unwrap();
    listed.retain(|entry| !entry.path().ends_with('/'));
    assert_eq!(listed.len(), keys.len());
}

#[tokio::test]
async fn ranges_are_answered_and_requests_are_logged() {
    let (_root, server) = server().await;
    let lake = client(&server.endpoint(), "lake");
    let content = pattern(100_000);
    lake.write("k", content.clone()).await.unwrap();
    server.log().clear();
    let read = lake.read_with("k").range(10..50_000).await.unwrap();
    assert_eq!(read.to_bytes(), &content[10..50_000]);
    assert!(lake.read("missing").await.is_err());
    lake.list("").await.unwrap();
    assert_eq!(server.log().counts().get("GET"), Some(&2));
    assert_eq!(server.log().counts().get("LIST"), Some(&1));
    assert_eq!(
        server.log().records()[0].range.as_deref(),
        Some("bytes=10-49999")
    );
}

#[tokio::test]
async fn if_match_on_a_read_is_answered_by_412_and_if_none_match_by_304() {
    let (_root, server) = server().await;
    let lake = client(&server.endpoint(), "lake");
    lake.write("k", "one").await.unwrap();
    let etag = lake.stat("k").await.unwrap().etag().unwrap().to_owned();
    assert!(lake.read_with("k").if_match(&etag).await.is_ok());
    let same = lake.read_with("k").if_none_match(&etag).await;
    assert_eq!(same.unwrap_err().kind(), ErrorKind::ConditionNotMatch);
    lake.write("k", "two").await.unwrap();
    let swapped = lake.read_with("k").range(0..1).if_match(&etag).await;
    assert_eq!(swapped.unwrap_err().kind(), ErrorKind::ConditionNotMatch);
    let swapped = lake.stat_with("k").if_match(&etag).await;
    assert_eq!(swapped.unwrap_err().kind(), ErrorKind::ConditionNotMatch);
}

#[tokio::test]
async fn a_wrong_secret_is_refused() {
    let (_root, server) = server().await;
    let url = format!("{}/lake/k", server.endpoint());
    let status = reqwest::get(&url).await.unwrap().status();
    assert_eq!(status, reqwest::StatusCode::FORBIDDEN);
}

/// Each task reads a counter and swaps it for the next number. Every acknowledged swap must be in the final count.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn conditional_writes_lose_no_swap() {
    const TASKS: usize = 16;
    const SWAPS: u64 = 6;
    let (_root, server) = server().await;
    client(&server.endpoint(), "lake")
        .write("pointer", "0")
        .await
        .unwrap();
    let refused = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let lake = client(&server.endpoint(), "lake");
            let refused = refused.clone();
            tokio::spawn(async move {
                let mut swapped = 0;
                while swapped < SWAPS {
                    let etag = lake
                        .stat("pointer")
                        .await
                        .unwrap()
                        .etag()
                        .unwrap()
                        .to_owned();
                    let Ok(read) = lake.read_with("pointer").if_match(&etag).await else {
                        continue;
                    };
                    let value: u64 = String::from_utf8(read.to_vec()).unwrap().parse().unwrap();
                    let next = (value + 1).to_string();
                    match lake.write_with("pointer", next).if_match(&etag).await {
                        Ok(_) => swapped += 1,
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::ConditionNotMatch, "{error}");
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            })
        })
        .collect();
    bounded(async {
        for task in tasks {
            task.await.unwrap();
        }
    })
    .await;
    let read = client(&server.endpoint(), "lake")
        .read("pointer")
        .await
        .unwrap();
    assert_eq!(
        read.to_bytes(),
        (TASKS as u64 * SWAPS).to_string().as_bytes()
    );
    assert!(
        refused.load(Ordering::Relaxed) > 0,
        "no race happened: this proves nothing"
    );
}

/// Of many creators of one key exactly one wins.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn if_none_match_creates_a_key_once() {
    let (_root, server) = server().await;
    for round in 0..10 {
        let tasks: Vec<_> = (0..16)
            .map(|_| {
                let lake = client(&server.endpoint(), "lake");
                tokio::spawn(async move {
                    let key = format!("new-{round}");
                    lake.write_with(&key, "x").if_not_exists(true).await.is_ok()
                })
            })
            .collect();
        let mut winners = 0;
        for task in tasks {
            winners += usize::from(task.await.unwrap());
        }
        assert_eq!(winners, 1);
    }
}

#[tokio::test]
async fn a_stopped_server_closes_its_port() {
    let (_root, server) = server().await;
    let address = server.addr();
    server.stop().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
