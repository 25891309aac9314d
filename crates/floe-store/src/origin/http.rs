//! The one HTTP client of a store: every request of every operator goes through it and is counted.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use http::{Request, Response};
use opendal::raw::{HttpBody, HttpFetch};
use opendal::{Buffer, ErrorKind};

use crate::config::OriginConfig;
use crate::stats::Counters;

/// A client that counts.
pub(crate) struct CountingClient {
    client: reqwest::Client,
    counters: Arc<Counters>,
}

impl CountingClient {
    /// Proxies and extra root certificates come from the environment, as the system's other programs have them.
    pub(crate) fn new(config: &OriginConfig, counters: Arc<Counters>) -> reqwest::Result<Self> {
        let client = reqwest::Client::builder()
            .pool_max_idle_per_host(config.concurrency)
            .pool_idle_timeout(Duration::from_secs(60))
            .connect_timeout(config.timeout)
            .read_timeout(config.timeout)
            .tcp_nodelay(true)
            .http1_only()
            // A redirect could carry credentials elsewhere, and object stores answer themselves.
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self { client, counters })
    }
}

/// A query that asks for names instead of an object.
fn is_list(uri: &http::Uri) -> bool {
    uri.query().is_some_and(|query| {
        query.split('&').any(|pair| {
            [
                "list-type=",
                "comp=list",
                "resource=filesystem",
                "delimiter=",
                "prefix=",
            ]
            .iter()
            .any(|list| pair.starts_with(list))
        })
    })
}

fn failed(what: &'static str, error: reqwest::Error) -> opendal::Error {
    let temporary = error.is_request()
        || error.is_body()
        || error.is_decode()
        || error.is_timeout()
        || error.is_connect();
    // The URL may hold a signature.
    opendal::Error::new(ErrorKind::Unexpected, what)
        .with_temporary(temporary)
        .set_source(error.without_url())
}

impl HttpFetch for CountingClient {
    async fn fetch(&self, request: Request<Buffer>) -> opendal::Result<Response<HttpBody>> {
        let (parts, body) = request.into_parts();
        self.counters
            .request(parts.method.as_str(), is_list(&parts.uri));
        let is_head = parts.method == http::Method::HEAD;
        let uri = parts.uri.clone();
        let mut request = self
            .client
            .request(parts.method, uri.to_string())
            .headers(parts.headers);
        if !body.is_empty() {
            request = request.body(body.to_bytes());
        }
        let response = request
            .send()
            .await
            .map_err(|error| failed("the request found no answer", error))?;
        let encoded = response
            .headers()
            .contains_key(http::header::CONTENT_ENCODING);
        // What was declared is compared with what comes, but for answers that have no body of that length.
        let declared = if is_head || encoded {
            None
        } else {
            response.content_length()
        };
        let mut builder = Response::builder()
            .status(response.status())
            .version(response.version())
            .extension(uri);
        if let Some(headers) = builder.headers_mut() {
            *headers = response.headers().clone();
        }
        let stream = response
            .bytes_stream()
            .try_filter(|bytes| futures::future::ready(!bytes.is_empty()))
            .map_ok(Buffer::from)
            .map_err(|error| failed("the answer broke off", error));
        builder
            .body(HttpBody::new(stream, declared))
            .map_err(|error| {
                opendal::Error::new(ErrorKind::Unexpected, "the answer has no valid head")
                    .set_source(error)
            })
    }
}
