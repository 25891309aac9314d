//! Temporary.
use floe_testing::lake::*;
use floe_testing::line::*;
use floe_testing::s3::S3Server;
use std::time::{Duration, Instant};
#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args[1] == "lake" {
        let rows = args.get(3).map_or(DEFAULT_ROWS, |r| r.parse().unwrap());
        let began = Instant::now();
        let mut last = String::new();
        let lake = Lake::build(
            &args[2],
            LakeConfig {
                rows,
                other: OtherLake::Refuse,
            },
            |s, d, t| {
                if s != last {
                    eprintln!("{s} at {:?}", began.elapsed());
                    last = s.to_owned();
                }
                let _ = (d, t);
            },
        )
        .await
        .unwrap();
        eprintln!("built in {:?}", began.elapsed());
        println!("{}", serde_json::to_string_pretty(lake.summary()).unwrap());
        return;
    }
    if args[1] == "append" {
        let lake = Lake::open(&args[2]).await.unwrap().unwrap();
        println!("{:?}", lake.append_match().await.unwrap());
        return;
    }
    // line: bytes, rate, connections
    let mb: usize = args[2].parse().unwrap();
    let rate: f64 = args[3].parse().unwrap();
    let conns: usize = args[4].parse().unwrap();
    let rtt = Duration::from_millis(30);
    let root = std::env::temp_dir().join("ftline");
    let _ = std::fs::remove_dir_all(&root);
    let origin = ScriptedOrigin::start().await.unwrap();
    let _s3 = S3Server::start(&root, "a", "b").await.unwrap();
    origin.put("b/k", vec![7u8; mb * 1_000_000 / conns]);
    let line = SlowLine::start(
        LineConfig {
            rate_mbit: rate,
            rtt,
        },
        origin.addr(),
    )
    .await
    .unwrap();
    let cpu = || {
        let s = std::fs::read_to_string("/proc/self/stat").unwrap();
        let v: Vec<&str> = s.rsplit(')').next().unwrap().split(' ').collect();
        (v[12].parse::<u64>().unwrap() + v[13].parse::<u64>().unwrap()) as f64 / 100.0
    };
    let c0 = cpu();
    let began = Instant::now();
    let tasks: Vec<_> = (0..conns)
        .map(|_| {
            let addr = line.addr();
            tokio::spawn(async move {
                use tokio::io::*;
                let mut s = tokio::net::TcpStream::connect(addr).await.unwrap();
                s.write_all(b"GET /b/k HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
                    .await
                    .unwrap();
                let mut n = 0;
                let mut buf = vec![0; 65536];
                loop {
                    let k = s.read(&mut buf).await.unwrap();
                    if k == 0 {
                        break;
                    }
                    n += k;
                }
                n
            })
        })
        .collect();
    let mut n = 0;
    for t in tasks {
        n += t.await.unwrap();
    }
    let t = began.elapsed();
    let floor = LineConfig {
        rate_mbit: rate,
        rtt,
    }
    .floor(n as u64)
        + 2 * rtt;
    println!(
        "{n} bytes {conns} conns: {t:?}, floor {floor:?}, ratio {:.4}, cpu {:.2} s",
        t.as_secs_f64() / floor.as_secs_f64(),
        cpu() - c0
    );
}
