//! A small HTTP origin in process over a map in memory: keys of any length, objects that change while they are read.
//! It speaks enough of S3 for path-style clients (GET, HEAD, PUT, DELETE; no listing) and ignores signatures.
//! Its faults are those of the line that it sits behind.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::http::header::{
    ACCEPT_RANGES, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, RANGE,
};
use ::http::{HeaderMap, Method, Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use super::{Fault, FaultId, FaultPlan, LineConfig, LineStats, SlowLine};
use crate::requests::RequestRecord;

/// A running origin. Dropping it closes its port and all its connections.
#[derive(Debug)]
pub struct ScriptedOrigin {
    objects: Objects,
    line: SlowLine,
    serving: JoinHandle<()>,
}

/// The bytes of an object and their entity tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectVersion {
    /// The content.
    pub bytes: Bytes,
    /// With its quotes; no two versions of any object share one.
    pub etag: String,
}

#[derive(Clone, Debug, Default)]
struct Objects(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// By decoded path without the leading slash: `bucket/key`.
    versions: HashMap<String, ObjectVersion>,
    /// Changes that wait for reads: path, GETs still to be answered with the old version, the new content.
    changes: Vec<(String, u64, Bytes)>,
    written: u64,
}

impl ScriptedOrigin {
    /// An empty origin on a free port of 127.0.0.1.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let objects = Objects::default();
        let serving = tokio::spawn(serve(listener, objects.clone()));
        let line = SlowLine::start(LineConfig::DIRECT, address).await?;
        Ok(Self {
            objects,
            line,
            serving,
        })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.line.addr()
    }

    /// The value for `s3.endpoint`.
    pub fn endpoint(&self) -> String {
        self.line.endpoint()
    }

    /// Creates or overwrites the object at `path` (`bucket/key`, not encoded); gives its new entity tag.
    pub fn put(&self, path: &str, bytes: impl Into<Bytes>) -> String {
        self.objects.lock().put(path, bytes.into())
    }

    /// Overwrites the object as soon as `gets` more GETs of it have been answered.
    pub fn overwrite_after(&self, path: &str, gets: u64, bytes: impl Into<Bytes>) {
        let mut state = self.objects.lock();
        if gets == 0 {
            state.put(path, bytes.into());
        } else {
            state.changes.push((path.to_owned(), gets, bytes.into()));
        }
    }

    /// Removes an object; gives whether it was there.
    pub fn remove(&self, path: &str) -> bool {
        self.objects.lock().versions.remove(path).is_some()
    }

    /// What is at `path` now.
    pub fn object(&self, path: &str) -> Option<ObjectVersion> {
        self.objects.lock().versions.get(path).cloned()
    }

    /// The faults of its answers.
    pub fn faults(&self) -> &FaultPlan {
        self.line.faults()
    }

    /// Shorthand for [`faults`](Self::faults)`().inject(fault)`.
    pub fn inject(&self, fault: Fault) -> FaultId {
        self.line.inject(fault)
    }

    /// What it was asked.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.line.requests()
    }

    /// Requests, bytes and connections.
    pub fn stats(&self) -> LineStats {
        self.line.stats()
    }

    /// Starts counting anew.
    pub fn reset(&self) {
        self.line.reset();
    }
}

impl Drop for ScriptedOrigin {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Objects {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn put(&mut self, path: &str, bytes: Bytes) -> String {
        self.written += 1;
        let etag = format!("\"v{}-{}\"", self.written, bytes.len());
        let version = ObjectVersion {
            bytes,
            etag: etag.clone(),
        };
        self.versions.insert(path.to_owned(), version);
        etag
    }

    /// Carries out the changes that waited for this read.
    fn count_read(&mut self, path: &str) {
        let mut due = Vec::new();
        self.changes.retain_mut(|(at, gets, bytes)| {
            if at != path {
                return true;
            }
            *gets -= 1;
            if *gets == 0 {
                due.push(bytes.clone());
            }
            *gets > 0
        });
        for bytes in due {
            self.put(path, bytes);
        }
    }
}

async fn serve(listener: TcpListener, objects: Objects) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let objects = objects.clone();
                connections.spawn(async move {
                    let service = service_fn(move |request| answer(objects.clone(), request));
                    // A client that leaves early is no error here.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn answer(
    objects: Objects,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = percent_decode_str(request.uri().path().trim_start_matches('/'))
        .decode_utf8_lossy()
        .into_owned();
    let headers = request.headers().clone();
    let method = request.method().clone();
    let body = match request.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => return Ok(failure(StatusCode::BAD_REQUEST, "IncompleteBody")),
    };
    let mut state = objects.lock();
    let current = state.versions.get(&path).cloned();
    let refused = refusal(&method, &headers, current.as_ref());
    Ok(match (method, current, refused) {
        (_, _, Some((status, code))) => failure(status, code),
        (Method::GET | Method::HEAD, None, _) => failure(StatusCode::NOT_FOUND, "NoSuchKey"),
        (Method::HEAD, Some(version), _) => content(&version, None),
        (Method::GET, Some(version), _) => {
            state.count_read(&path);
            content(
                &version,
                headers.get(RANGE).and_then(|value| value.to_str().ok()),
            )
        }
        (Method::PUT, _, _) => {
            let etag = state.put(&path, body);
            respond(StatusCode::OK, Bytes::new(), &[(ETAG, etag)])
        }
        (Method::DELETE, _, _) => {
            state.versions.remove(&path);
            respond(StatusCode::NO_CONTENT, Bytes::new(), &[])
        }
        _ => failure(StatusCode::NOT_IMPLEMENTED, "NotImplemented"),
    })
}

/// What the request's conditions forbid.
fn refusal(
    method: &Method,
    headers: &HeaderMap,
    current: Option<&ObjectVersion>,
) -> Option<(StatusCode, &'static str)> {
    let names = |name, version: &ObjectVersion| {
        let value = headers.get(name)?.to_str().ok()?;
        Some(value == "*" || value.trim_matches('"') == version.etag.trim_matches('"'))
    };
    let failed = Some((StatusCode::PRECONDITION_FAILED, "PreconditionFailed"));
    let Some(version) = current else {
        let writes = *method == Method::PUT;
        return if writes && headers.contains_key(IF_MATCH) {
            failed
        } else {
            None
        };
    };
    if names(IF_MATCH, version) == Some(false) {
        return failed;
    }
    match names(IF_NONE_MATCH, version) {
        Some(true) if *method == Method::PUT => failed,
        Some(true) => Some((StatusCode::NOT_MODIFIED, "NotModified")),
        _ => None,
    }
}

fn content(version: &ObjectVersion, range: Option<&str>) -> Response<Full<Bytes>> {
    let total = version.bytes.len() as u64;
    let mut headers = vec![
        (ETAG, version.etag.clone()),
        (ACCEPT_RANGES, "bytes".to_owned()),
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
    ];
    let Some(asked) = range.and_then(|range| range.strip_prefix("bytes=")) else {
        return respond(StatusCode::OK, version.bytes.clone(), &headers);
    };
    let Some(span) = span_of(asked, total) else {
        let star = [(CONTENT_RANGE, format!("bytes */{total}"))];
        return respond(StatusCode::RANGE_NOT_SATISFIABLE, Bytes::new(), &star);
    };
    let (start, end) = (span.start, span.end);
    headers.push((CONTENT_RANGE, format!("bytes {start}-{}/{total}", end - 1)));
    let bytes = version.bytes.slice(start as usize..end as usize);
    respond(StatusCode::PARTIAL_CONTENT, bytes, &headers)
}

/// The span that `first-last`, `first-` or `-suffix` means (RFC 9110, section 14.1.2); `None` if it can't be satisfied.
fn span_of(asked: &str, total: u64) -> Option<Range<u64>> {
    let (first, last) = asked.split_once('-')?;
    if first.is_empty() {
        let suffix: u64 = last.parse().ok()?;
        return (suffix > 0 && total > 0).then(|| total.saturating_sub(suffix)..total);
    }
    let first: u64 = first.parse().ok()?;
    let end = match last {
        "" => total,
        last => last.parse::<u64>().ok()?.saturating_add(1).min(total),
    };
    (first < end).then_some(first..end)
}

fn failure(status: StatusCode, code: &str) -> Response<Full<Bytes>> {
    let body = match status {
        StatusCode::NOT_MODIFIED => String::new(),
        _ => format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{status}</Message></Error>"
        ),
    };
    respond(
        status,
        body.into(),
        &[(CONTENT_TYPE, "application/xml".to_owned())],
    )
}

fn respond(
    status: StatusCode,
    body: Bytes,
    headers: &[(::http::HeaderName, String)],
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    for (name, value) in headers {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
