//! An S3 protocol server in process: `s3s` and `s3s-fs` over a directory, with what they lack made good.
//!
//! A bucket is a directory under the root; create it with [`S3Server::create_bucket`] or on disk.
//! Made good here: conditional writes are atomic (GET and HEAD take a read lock, all else the write lock),
//! GET and HEAD answer `If-Match` and `If-None-Match`, and a write goes on when its client hangs up.
//!
//! Limits of `s3s-fs` that remain: a written key may have about 164 bytes (its base64 is a file name; longer ones
//! answer 500, see [`ScriptedOrigin`](crate::line::ScriptedOrigin) for those); a key can't be both `p` and `p/q`;
//! listings carry no ETag; the ETag of a plain PUT is the MD5 of its bytes, so equal content has an equal ETag; files
//! that something else puts into the directory are served too, with an MD5 computed for every request.

mod conditions;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, HttpResponse};
use s3s_fs::FileSystem;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::RwLock;
use tokio::task::{JoinHandle, JoinSet};

use crate::requests::{RequestLog, RequestRecord};
use conditions::Conditions;

/// A running server. Dropping it closes its port and all its connections.
#[derive(Debug)]
pub struct S3Server {
    address: SocketAddr,
    root: PathBuf,
    log: RequestLog,
    accepting: JoinHandle<()>,
}

/// What every connection shares.
struct Shared {
    service: S3Service,
    /// Held in reading by GET and HEAD until their file is open, in writing by the rest until they are done.
    order: RwLock<()>,
    log: RequestLog,
}

impl S3Server {
    /// Serves the directories under `root` (created if missing) as buckets, on a free port of 127.0.0.1.
    /// Requests must be signed with this key pair (path-style addresses, any region).
    pub async fn start(
        root: impl AsRef<Path>,
        access_key: &str,
        secret_key: &str,
    ) -> io::Result<Self> {
        let root = root.as_ref().to_owned();
        std::fs::create_dir_all(&root)?;
        let files = FileSystem::new(&root)
            .map_err(|e| io::Error::other(format!("serving {} as S3: {e:?}", root.display())))?;
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single(access_key, secret_key));
        let log = RequestLog::default();
        let shared = Arc::new(Shared {
            service: builder.build(),
            order: RwLock::new(()),
            log: log.clone(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(accept(listener, shared));
        Ok(Self {
            address,
            root,
            log,
            accepting,
        })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The value for `s3.endpoint`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes an empty bucket (no error if it is there).
    pub fn create_bucket(&self, name: &str) -> io::Result<()> {
        std::fs::create_dir_all(self.root.join(name))
    }

    /// Every request since the start, refused ones included.
    pub fn log(&self) -> &RequestLog {
        &self.log
    }

    /// Closes the port and all connections, and waits until that is done.
    pub async fn stop(mut self) {
        self.accepting.abort();
        let _cancelled = (&mut self.accepting).await;
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Owned by this task, so that ending it ends the connections.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, shared.clone()));
                }
                Err(error) => tracing::warn!(%error, "accepting an S3 connection"),
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(shared.clone(), request));
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "an S3 connection ended early");
    }
}

async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<HttpResponse, Infallible> {
    shared.log.push(record(&request));
    let answered = if matches!(*request.method(), Method::GET | Method::HEAD) {
        read(&shared, request).await
    } else {
        // A task of its own: hyper drops this future when the client leaves, and half a write is no write.
        match tokio::spawn(async move { write(&shared, request).await }).await {
            Ok(answered) => answered,
            Err(error) => Err(error.to_string()),
        }
    };
    Ok(answered.unwrap_or_else(|message| {
        let mut response = HttpResponse::new(Body::from(message));
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        response
    }))
}

async fn read(shared: &Shared, request: Request<Incoming>) -> Result<HttpResponse, String> {
    let conditions = Conditions::of(request.headers());
    let _shared_order = shared.order.read().await;
    let response = shared
        .service
        .call(request.map(Body::from))
        .await
        .map_err(|e| format!("{e:?}"))?;
    Ok(conditions.apply(response))
}

async fn write(shared: &Shared, request: Request<Incoming>) -> Result<HttpResponse, String> {
    // The body is taken in before the lock: a slow upload must not stop the readers.
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map_err(|e| format!("reading the request's body: {e}"))?
        .to_bytes();
    let _alone = shared.order.write().await;
    shared
        .service
        .call(Request::from_parts(head, Body::from(body)))
        .await
        .map_err(|e| format!("{e:?}"))
}

fn record(request: &Request<Incoming>) -> RequestRecord {
    RequestRecord {
        method: request.method().to_string(),
        path: request
            .uri()
            .path_and_query()
            .map_or_else(|| "/".to_owned(), ToString::to_string),
        range: request
            .headers()
            .get(http::header::RANGE)
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()),
    }
}
