//! A small lake shared by all tests, and the binary run on it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use floe_testing::lake::{Lake, LakeConfig, OtherLake};
use floe_testing::line::{LineConfig, SlowLine};
use floe_testing::s3::S3Server;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// Rows of the small lake: one for each of as many matches.
pub(crate) const ROWS: u64 = 60;

/// The lake that tests only read; kept between runs, below the build's own directory.
pub(crate) async fn lake() -> &'static Lake {
    static LAKE: OnceCell<Lake> = OnceCell::const_new();
    let build = || async {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("floe-cli-lake");
        Lake::build(
            dir,
            LakeConfig {
                rows: ROWS,
                other: OtherLake::Replace,
            },
            |_, _, _| (),
        )
        .await
        .unwrap()
    };
    LAKE.get_or_init(build).await
}

/// A working directory with a `floe.toml`, a home and a cache of its own.
pub(crate) struct Lab {
    dir: TempDir,
    remote: Option<(SlowLine, S3Server)>,
}

impl Lab {
    /// Nothing is configured.
    pub(crate) fn empty() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            remote: None,
        }
    }

    /// The lake's files are read from disk.
    pub(crate) async fn local() -> Self {
        let lab = Self::empty();
        let uri = lake().await.catalog().uri();
        lab.write(
            "floe.toml",
            &format!("[catalog.demo]\ntype = \"sql\"\nuri = \"{uri}\"\n[cache]\ndir = \"cache\"\n"),
        );
        lab
    }

    /// The files of a lake are read from an S3 server behind a line that counts.
    pub(crate) async fn remote(lake: &Lake) -> Self {
        let server = S3Server::start(lake.dir(), "key", "secret-of-the-test")
            .await
            .unwrap();
        let line = SlowLine::start(LineConfig::DIRECT, server.addr())
            .await
            .unwrap();
        let mut lab = Self::empty();
        lab.write(
            "floe.toml",
            &format!(
                "[catalog.demo]\ntype = \"sql\"\nuri = \"{uri}\"\n\"s3.endpoint\" = \"{endpoint}\"\n\
                 \"s3.path-style-access\" = \"true\"\n\"s3.region\" = \"us-east-1\"\n\"s3.access-key-id\" = \"key\"\n\
                 \"s3.secret-access-key\" = \"secret-of-the-test\"\n\
                 [cache]\ndir = \"cache\"\nkeep-free-bytes = 0\n[location-map]\n\"{warehouse}\" = \"s3://warehouse\"\n",
                uri = lake.catalog().uri(),
                endpoint = line.endpoint(),
                warehouse = lake.warehouse_location(),
            ),
        );
        lab.remote = Some((line, server));
        lab
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Requests to the store since the last call.
    pub(crate) fn requests(&self) -> u64 {
        let (line, _) = self.remote.as_ref().unwrap();
        let requests = line.stats().requests.values().sum();
        line.reset();
        requests
    }

    /// The store is gone.
    pub(crate) async fn cut(&mut self) {
        let (line, server) = self.remote.take().unwrap();
        line.stop().await;
        server.stop().await;
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_floe"));
        command
            .args(arguments)
            .current_dir(self.dir.path())
            .env_clear()
            .env("HOME", self.dir.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs the binary to its end, off the test's own threads: servers of the test go on meanwhile.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Run {
        let mut command = self.command(arguments);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap();
        Run::from(output)
    }
}

/// How a run ended and what it said.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            bytes: output.stdout,
        }
    }
}

impl Run {
    /// It was done; gives what it printed.
    #[track_caller]
    pub(crate) fn done(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.stdout
    }

    /// It was done, and printed one JSON document.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.done()).unwrap()
    }

    /// It failed with this code and said so; gives what it said.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.stdout.is_empty(), "{self:?}");
        self.stderr
    }
}

/// The keys of a JSON object, sorted.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}
