use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex, split};
use windlass_helper::protocol::{MAX_CHUNK_BYTES, Report, VERSION};

use super::*;
use crate::api::Exit;

fn ready() -> Ready {
    Ready {
        proxy_port: 0,
        landlock: 0,
        memory_bounded: false,
        processes_bounded: false,
        filtered: false,
        runs_as_root: false,
        shell: "/bin/sh".to_owned(),
    }
}

/// Opens a channel to someone who has said these bytes already.
async fn open_to(said: &[u8]) -> (Result<Channel, SetupFailure>, DuplexStream) {
    let (near, mut far) = duplex(4 << 20);
    far.write_all(said).await.unwrap();
    let (from, to) = split(near);
    (Channel::open(from, to, Setup::for_host(String::new()), None, None).await, far)
}

fn bytes_of(reports: &[Report]) -> Vec<u8> {
    let mut bytes = Vec::new();
    reports.iter().for_each(|report| report.write(&mut bytes));
    bytes
}

#[tokio::test]
async fn a_helper_of_another_version_is_refused_by_name() {
    let mut bytes = bytes_of(&[Report::Ready(ready())]);
    bytes[5..9].copy_from_slice(&(VERSION + 1).to_le_bytes());
    let Err(SetupFailure::Broken(error)) = open_to(&bytes).await.0 else {
        panic!("it was accepted")
    };
    let expected = format!("the helper does not speak version {VERSION} of the protocol");
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn something_that_is_no_helper_is_refused() {
    for said in [&b"HTTP/1.1 200 OK\r\n\r\n"[..], b"\0\0\0\0", &[255; 64]] {
        assert!(matches!(open_to(said).await.0, Err(SetupFailure::Broken(Error::Protocol { .. }))));
    }
    let early = bytes_of(&[Report::Started { id: 1 }]);
    assert!(matches!(open_to(&early).await.0, Err(SetupFailure::Broken(Error::Protocol { .. }))));
}

#[tokio::test]
async fn a_helper_that_exceeds_its_window_is_disconnected() {
    let (channel, mut far) = open_to(&bytes_of(&[Report::Ready(ready())])).await;
    let Ok(channel) = channel else { panic!("it was refused") };
    let starter = channel.starter();
    let command = Command::script("a", "true", "/");
    let talk = async {
        let mut received = vec![0; 4096];
        // The setup, then the start.
        while !received.windows(4).any(|window| window == b"true") {
            let _ = far.read_buf(&mut received).await.unwrap();
        }
        far.write_all(&bytes_of(&[Report::Started { id: 1 }])).await.unwrap();
    };
    let (running, ()) = tokio::join!(starter.start(command, Vec::new(), Vec::new()), talk);
    let running = running.unwrap();
    let chunk = Report::Output { id: 1, stream: 1, bytes: vec![b'x'; MAX_CHUNK_BYTES] };
    far.write_all(&bytes_of(&vec![chunk; 12])).await.unwrap();
    assert_eq!(running.wait().await.exit, Exit::Lost);
    assert!(!channel.is_open());
}
