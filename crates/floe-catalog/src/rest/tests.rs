//! What the REST backend decides by itself: names in paths, whose properties win, what errors mean.

use std::collections::HashMap;

use super::fault::Fault;
use super::{escape, file_properties, principal};
use crate::error::ErrorKind;

fn map(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect()
}

#[test]
fn names_become_parts_of_a_path() {
    assert_eq!(escape("plain-1_2.x~").unwrap(), "plain-1_2.x~");
    assert_eq!(escape("a/b?c#d%e f").unwrap(), "a%2Fb%3Fc%23d%25e%20f");
    assert_eq!(escape("snö☃").unwrap(), "sn%C3%B6%E2%98%83");
    for none in ["", ".", ".."] {
        assert_eq!(escape(none).unwrap_err().kind(), ErrorKind::Invalid);
    }
}

#[test]
fn a_vended_session_token_is_not_mixed_with_the_users_keys() {
    let vended = map(&[("s3.access-key-id", "mine"), ("s3.session-token", "theirs")]);
    let files = file_properties(&map(&[("s3.access-key-id", "mine")]), &vended);
    assert_eq!(files, map(&[("s3.access-key-id", "mine")]));
    assert_eq!(file_properties(&map(&[]), &vended), vended);
}

#[test]
fn the_principal_shows_no_secret_and_outlives_vended_keys() {
    let who = |pairs: &[(&str, &str)]| principal("http://h", &map(pairs));
    assert_eq!(
        who(&[("credential", "ann:s3cret")]).unwrap(),
        "ann at http://h"
    );
    assert!(!who(&[("token", "s3cret")]).unwrap().contains("s3cret"));
    assert_ne!(who(&[("token", "a")]), who(&[("token", "b")]));
    assert_eq!(who(&[("s3.access-key-id", "x")]), None);
}

#[test]
fn an_unexpected_answer_is_understood_by_its_status() {
    for (status, kind) in [
        ("401 Unauthorized", ErrorKind::Denied),
        ("403 Forbidden", ErrorKind::Denied),
        ("404 Not Found", ErrorKind::Invalid),
        ("400 Bad Request", ErrorKind::Invalid),
        ("429 Too Many Requests", ErrorKind::Unavailable),
        ("503 Service Unavailable", ErrorKind::Unavailable),
        ("501 Not Implemented", ErrorKind::Unsupported),
        ("302 Found", ErrorKind::Unexpected),
    ] {
        // As iceberg-catalog-rest builds them.
        let error = iceberg::Error::new(
            iceberg::ErrorKind::Unexpected,
            "Received response with unexpected status code",
        )
        .with_context("status", status)
        .with_context("headers", "{\"x-secret\": \"status: 200\"}")
        .with_context(
            "json",
            r#"{"error": {"message": "no way,\n tok3n!", "type": "T", "code": 200}}"#,
        );
        let ours = Fault::of(&error).explain("do it", &error, &["tok3n"]);
        assert_eq!(ours.kind(), kind, "{status}");
        let text = format!("{ours:?}");
        assert!(
            text.contains(&status[..3]) && text.contains("no way, ***!"),
            "{text}"
        );
        assert!(
            !text.contains("x-secret") && !text.contains("tok3n"),
            "{text}"
        );
    }
}

#[test]
fn the_token_endpoints_refusal_is_denied() {
    let error = iceberg::Error::new(iceberg::ErrorKind::DataInvalid, "unknown client")
        .with_context("type", "NotAuthorizedException")
        .with_context("code", "401");
    let ours = Fault::of(&error).explain("do it", &error, &[]);
    assert_eq!(ours.kind(), ErrorKind::Denied);
    assert!(ours.to_string().contains("unknown client"), "{ours}");
}

#[test]
fn an_answer_that_is_no_catalogs_keeps_its_content_to_itself() {
    let error = iceberg::Error::new(
        iceberg::ErrorKind::Unexpected,
        "Failed to parse response from rest catalog server",
    )
    .with_context("json", "<html>s3cret</html>");
    let ours = Fault::of(&error).explain("do it", &error, &[]);
    assert_eq!(ours.kind(), ErrorKind::Corrupt);
    assert!(!format!("{ours:?}").contains("s3cret"));
}
