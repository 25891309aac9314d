//! What this process writes is cached, what it deletes is gone, and mapped locations are read-only.

use bytes::Bytes;
use floe_store::{ErrorKind, Store};
use floe_testing::s3::S3Server;

use crate::support::{TABLE, config, content, properties};

struct Real {
    server: S3Server,
    dir: tempfile::TempDir,
}

impl Real {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = S3Server::start(dir.path().join("s3"), "id", "secret")
            .await
            .unwrap();
        server.create_bucket("lake").unwrap();
        Self { server, dir }
    }

    fn store(&self) -> Store {
        Store::open(config(self.dir.path())).unwrap()
    }

    fn io(&self, store: &Store) -> iceberg::io::FileIO {
        store.file_io(&properties(&self.server.endpoint()), Some(TABLE))
    }

    fn gets(&self) -> u64 {
        self.server
            .log()
            .counts()
            .get("GET")
            .copied()
            .unwrap_or_default()
    }
}

#[tokio::test]
async fn a_written_file_is_cached_here_and_for_the_next_process() {
    let real = Real::start().await;
    for length in [0, 10, 400_000, 20_000_000] {
        let path = format!("s3://lake/data/{length}.parquet");
        let bytes = content(&path, length);
        let store = real.store();
        let mut writer = real
            .io(&store)
            .new_output(&path)
            .unwrap()
            .writer()
            .await
            .unwrap();
        for part in bytes.chunks(3_000_000) {
            writer.write(Bytes::copy_from_slice(part)).await.unwrap();
        }
        writer.close().await.unwrap();
        for store in [store, real.store()] {
            assert_eq!(
                real.io(&store)
                    .new_input(&path)
                    .unwrap()
                    .read()
                    .await
                    .unwrap(),
                bytes
            );
        }
        let there = std::fs::read(
            real.dir
                .path()
                .join(format!("s3/lake/data/{length}.parquet")),
        )
        .unwrap();
        assert!(there == bytes);
    }
    assert!(
        real.gets() <= 2,
        "only the empty file, of which nothing can be kept, is asked for: {}",
        real.gets()
    );
}

#[tokio::test]
async fn an_overwritten_file_is_read_as_it_was_written_last() {
    let real = Real::start().await;
    let store = real.store();
    let io = real.io(&store);
    for round in ["one", "two"] {
        let bytes = content(round, 1000);
        io.new_output("s3://lake/a.avro")
            .unwrap()
            .write(bytes.clone())
            .await
            .unwrap();
        assert_eq!(
            io.new_input("s3://lake/a.avro")
                .unwrap()
                .read()
                .await
                .unwrap(),
            bytes
        );
    }
}

#[tokio::test]
async fn a_deleted_file_is_gone_from_the_cache_too() {
    let real = Real::start().await;
    let store = real.store();
    let io = real.io(&store);
    for path in [
        "s3://lake/t/a.avro",
        "s3://lake/t/sub/b.avro",
        "s3://lake/tt/c.avro",
    ] {
        io.new_output(path)
            .unwrap()
            .write(content(path, 100))
            .await
            .unwrap();
    }
    io.delete("s3://lake/t/a.avro").await.unwrap();
    assert!(
        io.new_input("s3://lake/t/a.avro")
            .unwrap()
            .read()
            .await
            .is_err()
    );
    assert!(!io.exists("s3://lake/t/a.avro").await.unwrap());
    io.delete_prefix("s3://lake/t").await.unwrap();
    assert!(
        io.new_input("s3://lake/t/sub/b.avro")
            .unwrap()
            .read()
            .await
            .is_err()
    );
    assert!(
        io.new_input("s3://lake/tt/c.avro")
            .unwrap()
            .read()
            .await
            .is_ok(),
        "a prefix ends at a slash"
    );
}

#[tokio::test]
async fn a_mapped_location_is_read_elsewhere_and_never_written() {
    let real = Real::start().await;
    let mut config = config(real.dir.path());
    config
        .location_map
        .insert("file:/lake", "s3://lake/mirror")
        .unwrap();
    let writer = real.store();
    real.io(&writer)
        .new_output("s3://lake/mirror/t/a.avro")
        .unwrap()
        .write(content("a", 100))
        .await
        .unwrap();
    let store = Store::open(config).unwrap();
    let io = real.io(&store);
    assert_eq!(
        io.new_input("file:///lake/t/a.avro")
            .unwrap()
            .read()
            .await
            .unwrap(),
        content("a", 100)
    );
    for refused in [
        io.new_output("file:/lake/t/b.avro")
            .unwrap()
            .write(Bytes::new())
            .await
            .unwrap_err(),
        io.delete("file:///lake/t/a.avro").await.unwrap_err(),
        io.delete_prefix("/lake").await.unwrap_err(),
    ] {
        assert!(refused.to_string().contains("location-map"), "{refused}");
    }
}

#[tokio::test]
async fn a_store_that_is_offline_writes_nothing() {
    let real = Real::start().await;
    let mut config = config(real.dir.path());
    config.offline = true;
    let store = Store::open(config).unwrap();
    let error = real
        .io(&store)
        .new_output("s3://lake/a.avro")
        .unwrap()
        .write(Bytes::new())
        .await
        .unwrap_err();
    let source =
        std::error::Error::source(&error).and_then(|e| e.downcast_ref::<floe_store::Error>());
    assert_eq!(
        source.map(floe_store::Error::kind),
        Some(ErrorKind::Offline)
    );
    assert_eq!(real.server.log().records().len(), 0);
}
