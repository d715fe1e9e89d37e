//! A server tells the service manager that started it (systemd with `Type=notify`) how it is. The test is the manager.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;

use crate::operating::{SOON, Server, serving, start};

fn supervised(home: &Path, store: &str, socket: &str) -> Command {
    let mut command = serving(home, &["--store", store]);
    command.env("NOTIFY_SOCKET", socket);
    command
}

/// A heartbeat is due every 100 ms.
fn watched(home: &Path, socket: &str) -> Server {
    let mut command = supervised(home, "memory:", socket);
    command.env("WATCHDOG_USEC", "200000");
    start(command)
}

fn next(manager: &UnixDatagram) -> String {
    manager.set_read_timeout(Some(SOON)).unwrap();
    let mut buffer = [0; 1024];
    let length = manager.recv(&mut buffer).expect("the server told nothing");
    String::from_utf8(buffer[..length].to_vec()).unwrap()
}

fn next_but_heartbeats(manager: &UnixDatagram) -> String {
    loop {
        let message = next(manager);
        if message != "WATCHDOG=1" {
            return message;
        }
    }
}

fn is_told_the_life_of_a_server(manager: &UnixDatagram, server: Server) {
    let at = server.at.clone();
    assert_eq!(next(manager), format!("READY=1\nSTATUS=serves memory: on {at}"));
    // Two of them, so that they go on.
    assert_eq!((next(manager), next(manager)), ("WATCHDOG=1".to_owned(), "WATCHDOG=1".to_owned()));
    let tell = |signal| server.signal(signal);
    tell(Signal::SIGHUP);
    let reloading = next_but_heartbeats(manager);
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(next_but_heartbeats(manager), "READY=1");
    tell(Signal::SIGTERM);
    assert_eq!(next_but_heartbeats(manager), "STOPPING=1\nSTATUS=draining");
    server.line("stopped");
}

#[test]
fn a_service_manager_is_told_of_start_life_and_stop_of_a_server() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    let server = watched(home.path(), path.to_str().unwrap());
    is_told_the_life_of_a_server(&manager, server);
}

#[test]
fn a_service_manager_may_listen_on_an_abstract_socket() {
    let home = tempfile::tempdir().unwrap();
    let name = format!("tenure-test-{}", std::process::id());
    let manager = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let server = watched(home.path(), &format!("@{name}"));
    is_told_the_life_of_a_server(&manager, server);
}

#[test]
fn an_absent_store_is_in_the_status_and_the_server_stays_ready() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    // Nobody listens on port 1.
    let command = supervised(home.path(), "redis://127.0.0.1:1", path.to_str().unwrap());
    let server = start(command);
    assert!(next(&manager).starts_with("READY=1\n"));
    let status = next(&manager);
    assert!(status.starts_with("STATUS=the store is not well: "), "{status}");
    assert_eq!(status.lines().count(), 1, "{status}");
    assert_eq!(server.stop().0, Some(0));
}

#[test]
fn a_socket_that_is_gone_changes_nothing_for_a_server() {
    let home = tempfile::tempdir().unwrap();
    for socket in ["/nowhere/notify", "notify", "@nobody-listens"] {
        let server = watched(home.path(), socket);
        assert!(server.exchange("GET /readyz", "").starts_with("HTTP/1.1 200 "), "{socket}");
        assert_eq!(server.stop().0, Some(0), "{socket}");
    }
}
