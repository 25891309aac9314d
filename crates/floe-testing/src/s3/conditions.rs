//! `If-Match` and `If-None-Match` on reads (RFC 9110, sections 13.1.1 and 13.1.2), judged by the ETag of the answer.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use s3s::{Body, HttpResponse};

/// The conditions of one request.
pub(super) struct Conditions {
    if_match: Option<String>,
    if_none_match: Option<String>,
}

impl Conditions {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let text = |name| {
            let value: Option<&HeaderValue> = headers.get(name);
            value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Self {
            if_match: text(IF_MATCH),
            if_none_match: text(IF_NONE_MATCH),
        }
    }

    /// The response itself, or 412 or 304 in its place.
    pub(super) fn apply(&self, response: HttpResponse) -> HttpResponse {
        if !response.status().is_success() {
            return response;
        }
        let Some(etag) = response.headers().get(ETAG).cloned() else {
            return response;
        };
        let value = etag.to_str().unwrap_or_default();
        if self
            .if_match
            .as_deref()
            .is_some_and(|list| !names(list, value))
        {
            return refusal(StatusCode::PRECONDITION_FAILED, etag, PRECONDITION_FAILED);
        }
        if self
            .if_none_match
            .as_deref()
            .is_some_and(|list| names(list, value))
        {
            return refusal(StatusCode::NOT_MODIFIED, etag, "");
        }
        response
    }
}

const PRECONDITION_FAILED: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>PreconditionFailed</Code>\
    <Message>At least one of the preconditions you specified did not hold.</Message></Error>";

/// Whether a header's list (`*`, or entity tags with or without quotes) names this tag.
fn names(list: &str, etag: &str) -> bool {
    let bare = |tag: &str| {
        tag.trim()
            .trim_start_matches("W/")
            .trim_matches('"')
            .to_owned()
    };
    list.split(',')
        .any(|tag| tag.trim() == "*" || bare(tag) == bare(etag))
}

fn refusal(status: StatusCode, etag: HeaderValue, body: &'static str) -> HttpResponse {
    let mut response = HttpResponse::new(Body::from(body.to_owned()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(ETAG, etag);
    if !body.is_empty() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    }
    response
}
