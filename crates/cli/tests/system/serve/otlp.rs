//! `--otlp`: the requests to a collector of the test's own.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use prost::Message;

use crate::serve::{SOON, Server, ask, tenure};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const KEY: &str = "a-key-of-a-vendor";

/// A request: its path, its headers in lower case, its body.
type Posted = (String, HashMap<String, String>, Vec<u8>);

/// A collector on loopback that accepts every request.
fn collector() -> (u16, Receiver<Posted>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (told, posted) = channel();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let mut stream = BufReader::new(stream);
            let mut head = Vec::new();
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                match line.trim_end() {
                    "" => break,
                    line => head.push(line.to_owned()),
                }
            }
            let path = head[0].split(' ').nth(1).unwrap().to_owned();
            let pairs = head[1..].iter().filter_map(|line| line.split_once(": "));
            let headers: HashMap<_, _> =
                pairs.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
            let mut body = vec![0; headers["content-length"].parse().unwrap()];
            stream.read_exact(&mut body).unwrap();
            stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
            // The test may have seen enough.
            let _ = told.send((path, headers, body));
        }
    });
    (port, posted)
}

#[test]
fn traces_and_metrics_reach_the_collector_before_a_server_ends() {
    let (port, posted) = collector();
    let to = format!("http://127.0.0.1:{port}/collects");
    let args = ["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--otlp", &to];
    let mut command = tenure(&args, None);
    let server =
        Server::start(command.env("OTEL_EXPORTER_OTLP_HEADERS", format!("x-key={KEY}")), SOON);
    let job = format!(
        r#"{{"queue":"mail","payload":"a-secret-payload","traceparent":"00-{TRACE}-00f067aa0ba902b7-01"}}"#
    );
    assert_eq!(ask(&server, "POST /v1/jobs", "", &job).0, "201");
    let (_, said) = ask(&server, "POST /v1/leases", "", r#"{"queues":["mail"]}"#);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let lease = said["leases"][0]["lease"].as_str().unwrap();
    let call = format!(r#"{{"settle":[{{"lease":"{lease}","outcome":"succeeded"}}]}}"#);
    assert_eq!(ask(&server, "POST /v1/leases/settle", "", &call).0, "200");
    let (code, log) = server.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains(KEY), "{log}");
    let (mut spans, mut metrics) = (Vec::new(), HashMap::new());
    while let Ok((path, headers, body)) = posted.recv_timeout(Duration::from_millis(100)) {
        assert_eq!(headers["content-type"], "application/x-protobuf");
        assert_eq!(headers["x-key"], KEY);
        for secret in ["a-secret-payload", lease] {
            let found = body.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "{secret} is in a message to {path}");
        }
        match path.as_str() {
            "/collects/v1/traces" => {
                let message = ExportTraceServiceRequest::decode(&body[..]).unwrap();
                let of = message.resource_spans.into_iter().flat_map(|of| of.scope_spans);
                spans.extend(of.flat_map(|of| of.spans));
            }
            "/collects/v1/metrics" => {
                let message = ExportMetricsServiceRequest::decode(&body[..]).unwrap();
                let of = message.resource_metrics.into_iter().flat_map(|of| of.scope_metrics);
                metrics.extend(of.flat_map(|of| of.metrics).map(|found| (found.name, found.data)));
            }
            path => panic!("{path}"),
        }
    }
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["tenure.server.push", "tenure.server.wait", "tenure.server.run"]);
    for span in &spans {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(
            (hex(&span.trace_id), hex(&span.parent_span_id)),
            (TRACE.to_owned(), "00f067aa0ba902b7".to_owned())
        );
    }
    match &metrics["tenure_jobs_total"] {
        Some(Data::Sum(sum)) => assert!(sum.is_monotonic && !sum.data_points.is_empty()),
        data => panic!("{data:?}"),
    }
}
