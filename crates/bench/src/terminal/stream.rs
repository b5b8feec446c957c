//! A model server that streams one reply at a steady rate: no scripted server paces its pieces.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

/// Serves until the process ends; returns its base.
pub fn serve(tokens: usize, pause: Duration) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base = format!("http://{}", listener.local_addr()?);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that has gone away ends its answer, not the server.
            let _ = answer(stream, tokens, pause);
        }
    });
    Ok(base)
}

fn answer(stream: TcpStream, tokens: usize, pause: Duration) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length])?;
    let mut stream = stream;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    for number in 0..tokens {
        let end = if number % 12 == 11 { "\n\n" } else { " " };
        let delta = json!({ "role": "assistant", "content": format!("tok{number}{end}") });
        let piece = json!({ "choices": [{ "index": 0, "delta": delta }] });
        stream.write_all(format!("data: {piece}\n\n").as_bytes())?;
        std::thread::sleep(pause);
    }
    let last = json!({
        "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 10, "completion_tokens": tokens },
    });
    stream.write_all(format!("data: {last}\n\ndata: [DONE]\n\n").as_bytes())?;
    Ok(())
}
