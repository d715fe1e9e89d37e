//! A server over TLS: its files, a certificate that is renewed, certificates of clients, and the sentence of a client whose
//! handshake fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;
use tempfile::TempDir;
use tenure_testkit::certificates::{Authority, CertificateFiles, KeyedCertificate};
use tenure_testkit::tenure::fails;
use tenure_tls::{HostName, Tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;

use crate::operating::{Server, serving, start, tenure, told};

const HERE: [&str; 2] = ["127.0.0.1", "localhost"];

/// A home with an authority in `ca.pem`, which signed `server.crt` for `server.key`.
fn home() -> (TempDir, Authority, CertificateFiles) {
    let home = tempfile::tempdir().unwrap();
    let authority = Authority::named("of this test");
    authority.write(home.path(), "ca");
    let files = authority.signs(&HERE).write(home.path(), "server");
    (home, authority, files)
}

fn serve(home: &Path, files: &CertificateFiles, more: &[&str]) -> Command {
    let [certificate, key] = [&files.certificate, &files.key].map(|path| path.to_str().unwrap());
    let tls = ["--store", "memory:", "--tls-cert", certificate, "--tls-key", key];
    serving(home, &[&tls[..], more].concat())
}

/// One connection of HTTP/1.1 over TLS.
struct Secure {
    runtime: Runtime,
    stream: Box<dyn Encrypted>,
    certificate: Vec<u8>,
}

trait Encrypted: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin {}
impl<T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin> Encrypted for T {}

impl Secure {
    fn to(server: &Server, ca: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let tls = Tls::new(Some(ca), &[]).unwrap();
        let stream = runtime.block_on(async {
            let tcp = tokio::net::TcpStream::connect(&server.at).await.unwrap();
            tls.connect(HostName::parse("127.0.0.1").unwrap(), tcp).await.unwrap()
        });
        let certificate = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
        Secure { runtime, stream: Box::new(stream), certificate }
    }

    /// Whether a call is answered well.
    fn is_well(&mut self) -> bool {
        let Secure { runtime, stream, .. } = self;
        runtime.block_on(async {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"}") {
                assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "{answer:?}");
            }
            answer.starts_with(b"HTTP/1.1 200 ")
        })
    }
}

#[test]
fn a_certificate_is_renewed_live_and_a_broken_one_is_ignored() {
    let (home, authority, files) = home();
    let ca = home.path().join("ca.pem");
    // As certbot and Kubernetes do: the names stay, and lead elsewhere.
    let linked = CertificateFiles {
        certificate: home.path().join("live.crt"),
        key: home.path().join("live.key"),
    };
    let link = |files: &CertificateFiles| {
        for (target, name) in [(&files.certificate, &linked.certificate), (&files.key, &linked.key)]
        {
            let new = name.with_extension("link");
            std::os::unix::fs::symlink(target, &new).unwrap();
            fs::rename(&new, name).unwrap();
        }
    };
    link(&files);
    let server = start(serve(home.path(), &linked, &[]));
    assert!(server.line("listening on").contains("https://"));
    let names_it = format!("by {}", linked.certificate.display());
    assert!(server.line("tenure serves").contains(&names_it), "{}", server.said());
    let (taken, stays) = ("new connections use the new certificate", "the previous ones stay");
    let mut old = Secure::to(&server, &ca);
    assert!(old.is_well());
    link(&authority.signs(&HERE).write(home.path(), "second"));
    server.nth_line(taken, 1);
    let mut new = Secure::to(&server, &ca);
    assert!(new.certificate != old.certificate && new.is_well() && old.is_well());
    // A key of another certificate.
    let strange = authority.signs(&HERE);
    fs::write(home.path().join("second.key"), &strange.key).unwrap();
    server.nth_line(stays, 1);
    assert!(server.line(stays).contains("does not fit"));
    assert!(Secure::to(&server, &ca).certificate == new.certificate && new.is_well());
    // Asked to by a signal, at once.
    server.signal(Signal::SIGHUP);
    server.nth_line(stays, 2);
    strange.write(home.path(), "second");
    server.signal(Signal::SIGHUP);
    server.nth_line(taken, 2);
    let newest = Secure::to(&server, &ca);
    assert!(newest.certificate != new.certificate && new.is_well() && old.is_well());
    let (code, log) = server.stop();
    assert_eq!(code, Some(0));
    assert!(!log.contains("PRIVATE") && !log.contains("panicked"), "{log}");
}

#[test]
fn what_is_wrong_with_a_file_is_told_before_anything_is_served() {
    let (home, authority, files) = home();
    let put = |name: &str, text: &str| -> PathBuf {
        fs::write(home.path().join(name), text).unwrap();
        home.path().join(name)
    };
    let empty = put("empty", "");
    let locked =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let locked = put("locked", locked);
    let damaged = put("damaged", "-----BEGIN CERTIFICATE-----\nAAAA\n");
    let noise = put("noise", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let other = authority.signs(&HERE).write(home.path(), "other");
    let gone = home.path().join("gone");
    let (certificate, key) = (&files.certificate, &files.key);
    for (certificate, key, part) in [
        (&gone, key, "no such file"),
        (certificate, &gone, "no such file"),
        (&empty, key, "there is no certificate in"),
        (key, key, "there is no certificate in"),
        (certificate, &empty, "there is no private key in"),
        (certificate, certificate, "there is no private key in"),
        (certificate, &locked, "has a passphrase"),
        (&damaged, key, "is damaged"),
        (&noise, key, "cannot be used"),
        (certificate, &other.key, "does not fit"),
    ] {
        let files = CertificateFiles { certificate: certificate.clone(), key: key.clone() };
        let (code, out, err) = told(&mut serve(home.path(), &files, &["--log-format", "text"]));
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(part) && !err.contains("PRIVATE KEY-----\n"), "{part}: {err}");
    }
    let [certificate, key] = [certificate, key].map(|path| path.to_str().unwrap());
    for (arguments, part) in [
        (&["--tls-cert", certificate][..], "its key is not"),
        (&["--tls-key", key], "its certificate is not"),
        (&["--tls-client-ca", certificate], "a certificate of the server is not"),
    ] {
        let base = ["serve", "--store", "memory:", "--log-format", "text"];
        fails(2, &mut tenure(home.path(), &[&base[..], arguments].concat()), part);
    }
}

/// Asks for `stats`: exit code and stderr.
fn asks(home: &Path, url: &str, more: &[&str]) -> (i32, String) {
    asks_for("stats", home, url, more)
}

fn asks_for(what: &str, home: &Path, url: &str, more: &[&str]) -> (i32, String) {
    let (code, _, err) = told(&mut tenure(home, &[&["--url", url, what][..], more].concat()));
    (code, err)
}

#[test]
fn a_client_is_told_what_to_do_about_a_certificate() {
    let (home, authority, files) = home();
    let ca = home.path().join("ca.pem");
    let ca = ca.to_str().unwrap();
    let server = start(serve(home.path(), &files, &[]));
    let url = format!("https://{}", server.at);
    assert_eq!(asks(home.path(), &url, &["--ca", ca]).0, 0);
    let mut by_variable = tenure(home.path(), &["--url", &url, "stats"]);
    assert_eq!(told(by_variable.env("TENURE_CA", ca)).0, 0);
    let profile = format!("default_profile = 'x'\n[profiles.x]\nurl = '{url}'\nca = '{ca}'\n");
    fs::create_dir_all(home.path().join(".config/tenure")).unwrap();
    fs::write(home.path().join(".config/tenure/config.toml"), profile).unwrap();
    assert_eq!(told(&mut tenure(home.path(), &["stats"])).0, 0);
    fs::remove_file(home.path().join(".config/tenure/config.toml")).unwrap();
    let says = |url: &str, more: &[&str], code: i32, part: &str| {
        for what in ["stats", "status"] {
            let (found, err) = asks_for(what, home.path(), url, more);
            assert!(found == code && err.contains(part), "{what} {code} {part}: {found} {err}");
            assert!(!err.contains("is it running?"), "{what} {part}: {err}");
        }
    };
    says(&url, &[], 69, "of an authority that is not trusted here; name");
    says(&url, &["--ca", "/nowhere"], 2, "cannot read \"/nowhere\"");
    says(&url.replace("https", "http"), &[], 69, "this server speaks HTTPS");
    let elsewhere: KeyedCertificate = authority.signs(&["tenure.example"]);
    for (certificate, part) in
        [(elsewhere, "is for tenure.example; use"), (authority.signed_once(&HERE), "has expired")]
    {
        let files = certificate.write(home.path(), "wrong");
        let server = start(serve(home.path(), &files, &[]));
        says(&format!("https://{}", server.at), &["--ca", ca], 69, part);
    }
    let clear = start(serving(home.path(), &["--store", "memory:"]));
    says(&format!("https://{}", clear.at), &["--ca", ca], 69, "does not speak TLS on this port");
}

#[test]
fn a_server_with_a_client_authority_asks_for_certificates() {
    let (home, authority, files) = home();
    let ca = home.path().join("ca.pem");
    let ca = ca.to_str().unwrap();
    let own = authority.signs_client().write(home.path(), "client");
    let strange = Authority::named("another").signs_client().write(home.path(), "strange");
    let server = start(serve(home.path(), &files, &["--tls-client-ca", ca]));
    let url = format!("https://{}", server.at);
    let showing = |files: &CertificateFiles| {
        let [certificate, key] =
            [&files.certificate, &files.key].map(|path| path.to_str().unwrap().to_owned());
        let more = ["--ca", ca, "--client-cert", &certificate, "--client-key", &key];
        asks(home.path(), &url, &more)
    };
    assert_eq!(showing(&own).0, 0);
    let (code, err) = showing(&strange);
    assert!(code == 69 && err.contains("does not take the certificate of this client"), "{err}");
    let (code, err) = asks(home.path(), &url, &["--ca", ca]);
    assert!(code == 69 && err.contains("asks callers for a certificate; name yours"), "{err}");
    let certificate = own.certificate.to_str().unwrap();
    let (code, err) = asks(home.path(), &url, &["--ca", ca, "--client-cert", certificate]);
    assert!(code == 2 && err.contains("its key is not"), "{err}");
    server.line("callers came to no TLS connection");
}
