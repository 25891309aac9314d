//! REST: the conformance suite against a server in process, and what a server can do wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use floe_catalog::{Catalog, ErrorKind, connect};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use iceberg::{NamespaceIdent, TableIdent};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::support::conformance::{self, Lake};
use crate::support::{TableFiles, properties, store};

type Levels = Vec<String>;

/// What the server knows and what it was asked.
#[derive(Default)]
struct State {
    namespaces: BTreeSet<Levels>,
    tables: BTreeMap<(Levels, String), String>,
    /// The configuration sent along with each table.
    table_config: Value,
    /// The token that is let in; `None`: everybody is.
    token: Option<String>,
    tokens_given: u32,
    /// Answered to everything instead.
    broken: Option<(u16, &'static str)>,
    authorizations: Vec<String>,
    delegations: Vec<String>,
}

#[derive(Clone)]
struct Server {
    state: Arc<Mutex<State>>,
    uri: String,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap());
        let server = Self {
            state: Arc::default(),
            uri,
        };
        server.lock().table_config = json!({});
        let state = server.state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = state.clone();
                tokio::spawn(async move {
                    let answer = service_fn(move |request| answer(state.clone(), request));
                    http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), answer)
                        .await
                        .ok();
                });
            }
        });
        server
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    async fn connect(&self, pairs: &[(&str, &str)]) -> Arc<dyn Catalog> {
        let mut all = properties(pairs);
        all.insert("uri".into(), format!("{}/", self.uri));
        connect("c", &all, &store()).await.unwrap()
    }
}

async fn answer(
    state: Arc<Mutex<State>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let mut state = state.lock().unwrap();
    let (status, json) = match state.broken {
        Some((status, text)) => (status, text.to_string()),
        None => {
            let (status, json) = route(&mut state, &head, &body);
            (status, json.to_string())
        }
    };
    let mut response = Response::new(Full::new(Bytes::from(json)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    Ok(response)
}

fn refused(status: u16, message: &str) -> (u16, Value) {
    (
        status,
        json!({"error": {"message": message, "type": "Refused", "code": status}}),
    )
}

fn route(state: &mut State, head: &hyper::http::request::Parts, body: &Bytes) -> (u16, Value) {
    let decode = |text: &str| percent_decode_str(text).decode_utf8().unwrap().into_owned();
    let levels =
        |text: &str| -> Levels { decode(text).split('\u{1f}').map(str::to_string).collect() };
    let header = |name: &str| {
        head.headers
            .get(name)
            .map_or(String::new(), |v| v.to_str().unwrap().to_string())
    };
    let path: Vec<&str> = head.uri.path().split('/').skip(1).collect();
    if path == ["v1", "oauth", "tokens"] {
        assert!(String::from_utf8_lossy(body).contains("client_secret=s3cret"));
        state.tokens_given += 1;
        let token = format!("token-{}", state.tokens_given);
        state.token = Some(token.clone());
        return (200, json!({"access_token": token, "token_type": "bearer"}));
    }
    let authorization = header("authorization");
    state.authorizations.push(authorization.clone());
    state
        .delegations
        .push(header("x-iceberg-access-delegation"));
    if state
        .token
        .as_ref()
        .is_some_and(|token| authorization != format!("Bearer {token}"))
    {
        return refused(401, "who are you");
    }
    match path.as_slice() {
        ["v1", "config"] => (
            200,
            json!({"defaults": {"s3.region": "here", "s3.endpoint": "http://theirs"}, "overrides": {}}),
        ),
        ["v1", "namespaces"] => {
            let parent: Levels = head
                .uri
                .query()
                .and_then(|query| {
                    url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "parent")
                })
                .map(|(_, parent)| levels(&parent))
                .unwrap_or_default();
            if !parent.is_empty() && !state.namespaces.contains(&parent) {
                return refused(404, "no such parent");
            }
            let below: BTreeSet<&[String]> = state
                .namespaces
                .iter()
                .filter(|ns| ns.len() > parent.len() && ns.starts_with(&parent))
                .map(|ns| &ns[..=parent.len()])
                .collect();
            // Against the order, to see it restored.
            (
                200,
                json!({"namespaces": below.into_iter().rev().collect::<Vec<_>>()}),
            )
        }
        ["v1", "namespaces", ns] => match state.namespaces.contains(&levels(ns)) {
            true => (200, json!({"namespace": levels(ns), "properties": {}})),
            false => refused(404, "no such namespace"),
        },
        ["v1", "namespaces", ns, "tables"] => {
            let ns = levels(ns);
            if !state.namespaces.contains(&ns) {
                return refused(404, "no such namespace");
            }
            let names = state.tables.keys().rev().filter(|(of, _)| *of == ns);
            let tables: Vec<_> = names
                .map(|(of, name)| json!({"namespace": of, "name": name}))
                .collect();
            (200, json!({"identifiers": tables}))
        }
        ["v1", "namespaces", ns, "tables", name] => {
            match state.tables.get(&(levels(ns), decode(name))) {
                Some(location) => table(location, &state.table_config),
                None => refused(404, "no such table"),
            }
        }
        _ => refused(404, "no such route"),
    }
}

fn table(location: &str, config: &Value) -> (u16, Value) {
    let path = location.strip_prefix("file://").unwrap();
    match std::fs::read(path)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok())
    {
        Some(metadata) => (
            200,
            json!({"metadata-location": location, "metadata": metadata, "config": config}),
        ),
        None => refused(500, "the metadata can't be read"),
    }
}

struct RestLake {
    server: Server,
    catalog: Arc<dyn Catalog>,
}

impl Lake for RestLake {
    /// The server reads the metadata and answers for its faults.
    const READS_METADATA: bool = false;

    fn catalog(&self) -> Arc<dyn Catalog> {
        self.catalog.clone()
    }

    async fn create_namespace(&self, levels: &[&str]) {
        let mut state = self.server.lock();
        for end in 1..=levels.len() {
            state.namespaces.insert(
                levels[..end]
                    .iter()
                    .map(|level| level.to_string())
                    .collect(),
            );
        }
    }

    async fn point(&self, levels: &[&str], table: &str, location: &str) {
        let levels = levels.iter().map(|level| level.to_string()).collect();
        self.server
            .lock()
            .tables
            .insert((levels, table.to_string()), location.to_string());
    }

    async fn drop_table(&self, levels: &[&str], table: &str) {
        let levels = levels.iter().map(|level| level.to_string()).collect();
        self.server
            .lock()
            .tables
            .remove(&(levels, table.to_string()));
    }
}

/// A server with one table `ns.t`.
async fn with_a_table(dir: &TempDir) -> (Server, TableFiles) {
    let server = Server::start().await;
    let files = TableFiles::new(dir.path());
    let ns = vec!["ns".to_string()];
    server.lock().namespaces.insert(ns.clone());
    server
        .lock()
        .tables
        .insert((ns, "t".to_string()), files.write(1));
    (server, files)
}

fn ident() -> TableIdent {
    TableIdent::from_strs(["ns", "t"]).unwrap()
}

#[tokio::test]
async fn conforms() {
    let server = Server::start().await;
    let catalog = server.connect(&[]).await;
    conformance::run(&RestLake { server, catalog }).await;
}

#[tokio::test]
async fn properties_of_server_table_and_user_reach_the_files_and_the_users_win() {
    let dir = TempDir::new().unwrap();
    let (server, _files) = with_a_table(&dir).await;
    server.lock().table_config =
        json!({"s3.access-key-id": "vended", "s3.session-token": "vended", "s3.region": "vended"});
    let user = [
        ("s3.endpoint", "http://mine"),
        ("token", "t0ken"),
        ("header.x-extra", "1"),
    ];
    let table = server
        .connect(&user)
        .await
        .load_table(&ident())
        .await
        .unwrap();
    let props = table.file_io().config().props().clone();
    let get = |key: &str| props.get(key).map(String::as_str);
    assert_eq!(get("s3.endpoint"), Some("http://mine"));
    assert_eq!(
        (get("s3.access-key-id"), get("s3.session-token")),
        (Some("vended"), Some("vended"))
    );
    assert_eq!(
        (get("s3.region"), get("token"), get("header.x-extra")),
        (Some("vended"), None, None)
    );
    let state = server.lock();
    assert!(
        state
            .authorizations
            .iter()
            .all(|sent| sent == "Bearer t0ken"),
        "{:?}",
        state.authorizations
    );
    assert!(
        state
            .delegations
            .iter()
            .all(|sent| sent == "vended-credentials"),
        "{:?}",
        state.delegations
    );
}

#[tokio::test]
async fn an_expired_token_is_renewed_once() {
    let dir = TempDir::new().unwrap();
    let (server, files) = with_a_table(&dir).await;
    let catalog = server.connect(&[("credential", "ann:s3cret")]).await;
    catalog.load_table(&ident()).await.unwrap();
    server.lock().token = Some("another".to_string());
    assert_eq!(
        catalog
            .load_table(&ident())
            .await
            .unwrap()
            .metadata()
            .uuid(),
        files.uuid
    );
    assert_eq!(server.lock().tokens_given, 2);
}

#[tokio::test]
async fn a_refused_token_is_denied_and_never_shown() {
    let dir = TempDir::new().unwrap();
    let (server, _files) = with_a_table(&dir).await;
    server.lock().token = Some("right".to_string());
    let catalog = server.connect(&[("token", "wr0ng-token")]).await;
    let error = catalog.load_table(&ident()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
    assert!(error.to_string().contains("who are you"), "{error}");
    assert!(!format!("{error:?} {catalog:?}").contains("wr0ng-token"));
}

#[tokio::test]
async fn a_failing_server_is_never_taken_for_a_missing_table() {
    let dir = TempDir::new().unwrap();
    let (server, _files) = with_a_table(&dir).await;
    let catalog = server.connect(&[]).await;
    catalog.load_table(&ident()).await.unwrap();
    for (broken, kind) in [
        ((503, "{}"), ErrorKind::Unavailable),
        ((500, ""), ErrorKind::Unavailable),
        ((429, "slow down"), ErrorKind::Unavailable),
        ((403, "{}"), ErrorKind::Denied),
        ((200, "<html>welcome</html>"), ErrorKind::Corrupt),
        ((200, "{}"), ErrorKind::Corrupt),
    ] {
        server.lock().broken = Some(broken);
        let error = catalog.load_table(&ident()).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{broken:?}: {error:?}");
        let error = catalog
            .list_tables(&NamespaceIdent::new("ns".into()))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), kind, "{broken:?}: {error:?}");
    }
}

#[tokio::test]
async fn what_is_no_server_is_said() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let catalog = connect(
        "c",
        &properties(&[("uri", &format!("http://127.0.0.1:{port}"))]),
        &store(),
    )
    .await
    .unwrap();
    let error = catalog.list_namespaces(None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    for uri in ["ftp://h", "http://", "not a uri"] {
        let error = connect(
            "c",
            &properties(&[("uri", uri), ("type", "rest")]),
            &store(),
        )
        .await
        .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{uri}");
    }
    let server = Server::start().await;
    server.lock().broken = Some((404, "not here"));
    let error = server
        .connect(&[])
        .await
        .load_table(&ident())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
}
