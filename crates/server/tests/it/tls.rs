//! An encrypted server: the cookie is for encrypted connections alone, and HTTP/2 is spoken.

use std::path::Path;
use std::process::Command;

use reqwest::Method;
use serde_json::json;
use windlass_server::{Error, Options, Server, TlsFiles};
use windlass_testkit::Stage;

use crate::world::{World, answer, options, set_cookie};

/// A certificate that nobody has signed, made for this test.
fn files(directory: &Path) -> TlsFiles {
    let files =
        TlsFiles { certificates: directory.join("cert.pem"), key: directory.join("key.pem") };
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout"])
        .arg(&files.key)
        .arg("-out")
        .arg(&files.certificates)
        .output()
        .expect("openssl makes a certificate; scripts/test installs it");
    assert!(made.status.success(), "{made:?}");
    files
}

#[tokio::test]
async fn an_encrypted_server_speaks_both_versions_and_marks_its_cookie() {
    let stage = Stage::set("goal: unused\nreplies: [{say: done}]");
    let directory = tempfile::tempdir().unwrap();
    let tls = Some(files(directory.path()));
    let mut world = World::with(stage, Options { tls, ..options() }).await;
    assert!(world.base.starts_with("https://"), "{}", world.base);
    let response = world.get("/v1/tasks").send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.version()), (200, reqwest::Version::HTTP_2));
    let older = World::client().http1_only().build().unwrap();
    let older = older.get(format!("{}/healthz", world.base)).send().await.unwrap();
    assert_eq!((older.status().as_u16(), older.version()), (200, reqwest::Version::HTTP_11));
    let code = world.link.split_once('#').unwrap().1;
    let login = world.anonymous(Method::POST, "/v1/login").json(&json!({ "code": code }));
    let response = login.send().await.unwrap();
    assert!(set_cookie(&response).contains("; Secure"), "{response:?}");
    // Who does not encrypt gets nothing.
    let plain = world.base.replace("https", "http");
    assert!(world.client.get(format!("{plain}/healthz")).send().await.is_err());
    assert_eq!(answer(world.get("/readyz")).await.0, 200);
    world.stop().await;
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_is_refused() {
    let stage = Stage::set("goal: unused\nreplies: [{say: done}]");
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path());
    let missing = TlsFiles { certificates: "/nowhere.pem".into(), ..files.clone() };
    let swapped = TlsFiles { certificates: files.key, key: files.certificates };
    for tls in [missing, swapped] {
        let options = Options { tls: Some(tls), ..options() };
        let bound = Server::bind(stage.coordinator.clone(), options).await;
        assert!(matches!(bound, Err(Error::Tls { .. })));
    }
}
