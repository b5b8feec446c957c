//! One connection: it reads requests and writes answers, with as much HTTP/1.1 as that takes.

use std::{
    future::Future,
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use windlass_model::Wire;

use super::{
    Answer, Request, Shared,
    answer::{End, What},
    sse,
};

/// The largest head of a request.
const MAX_HEAD: usize = 64 * 1024;

/// The largest body of a request: far more than any conversation.
const MAX_BODY: usize = 256 * 1024 * 1024;

struct Connection {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    buffer: Vec<u8>,
    number: usize,
    /// When the last of the last answer was handed to the network.
    sent: Option<Instant>,
}

/// Whether a connection takes another request.
enum Next {
    Keep,
    Close,
}

/// Serves requests until the client leaves or an answer says to close.
pub(crate) async fn serve(socket: TcpStream, number: usize, shared: Arc<Shared>) {
    let _ = socket.set_nodelay(true);
    let (reader, writer) = socket.into_split();
    let mut connection = Connection { reader, writer, buffer: Vec::new(), number, sent: None };
    while let Ok(Some(request)) = connection.read().await {
        let last = request.header("connection") == Some("close");
        shared.begin();
        let ended = connection.answer(request, &shared).await;
        shared.end();
        match ended {
            Ok(Next::Keep) if !last => {}
            Ok(Next::Keep | Next::Close) => break,
            Err(_) => {
                shared.left.raise();
                break;
            }
        }
    }
}

impl Connection {
    /// The next request, or nothing when the client has left.
    async fn read(&mut self) -> io::Result<Option<Request>> {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            // Web servers answer like this too, for example to a TLS handshake.
            if self.buffer.first().is_some_and(|byte| !byte.is_ascii_uppercase()) {
                self.whole(400, "text/plain", &[], "bad request").await?;
                return Ok(None);
            }
            if self.buffer.len() > MAX_HEAD || self.reader.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        };
        let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let path = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or("/").to_owned();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0).min(MAX_BODY);
        self.buffer.drain(..end + 4);
        self.buffer.reserve(length.saturating_sub(self.buffer.len()));
        while self.buffer.len() < length {
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
        let rest = self.buffer.split_off(length);
        let body = std::mem::replace(&mut self.buffer, rest).into();
        Ok(Some(Request::new(path, headers, body, self.number)))
    }

    async fn answer(&mut self, request: Request, shared: &Shared) -> io::Result<Next> {
        let Some(wire) = request.wire() else {
            return self.elsewhere(&request.path).await;
        };
        let model = request.model.clone();
        let (streamed, turn, bytes) = (request.streamed, request.replies, request.body.len());
        let encrypted = request.wants_encrypted();
        let (answer, place) = shared.take(request);
        let asked = sse::RequestFacts { model: &model, turn, bytes, encrypted };
        self.sent = None;
        let next = self.send_answer(&answer, wire, streamed, &asked).await;
        if let Some(at) = self.sent {
            shared.answered(place, at);
        }
        next
    }

    async fn send_answer(
        &mut self,
        answer: &Answer,
        wire: Wire,
        streamed: bool,
        asked: &sse::RequestFacts<'_>,
    ) -> io::Result<Next> {
        self.wait(answer.delay).await?;
        match &answer.what {
            What::Reply(reply) => {
                self.wait(reply.delay).await?;
                let cost = reply.usage.and_then(|usage| usage.cost_usd);
                let mut answer = answer.clone();
                if let Some(cost) = cost {
                    answer = answer.header("x-litellm-response-cost", &cost.to_string());
                }
                if streamed {
                    return self.stream(&answer, sse::stream(wire, reply, asked)).await;
                }
                self.gates(&answer, 0).await?;
                let body = sse::whole(wire, reply, asked).to_string();
                self.whole(200, "application/json", &answer.headers, &body).await
            }
            What::Stream(chunks) => self.stream(answer, chunks.clone()).await,
            What::Status { code, kind, body } => {
                self.gates(answer, 0).await?;
                self.whole(*code, kind, &answer.headers, body).await
            }
            What::Raw(bytes) => {
                self.gates(answer, 0).await?;
                self.writer.write_all(bytes).await?;
                Ok(Next::Close)
            }
            What::Close => {
                self.gates(answer, 0).await?;
                Ok(Next::Close)
            }
        }
    }

    async fn elsewhere(&mut self, path: &str) -> io::Result<Next> {
        if path.ends_with("/models") {
            let models = r#"{"object":"list","data":[{"id":"scripted","object":"model"}]}"#;
            return self.whole(200, "application/json", &[], models).await;
        }
        self.whole(404, "application/json", &[], r#"{"detail":"Not Found"}"#).await
    }

    async fn whole(
        &mut self,
        code: u16,
        kind: &str,
        headers: &[(String, String)],
        body: &str,
    ) -> io::Result<Next> {
        let length = body.len();
        let extra = lines(headers);
        let response = format!(
            "HTTP/1.1 {code} .\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n{extra}\r\n{body}"
        );
        self.last(response.as_bytes()).await
    }

    async fn stream(&mut self, answer: &Answer, chunks: Vec<Vec<u8>>) -> io::Result<Next> {
        self.gates(answer, 0).await?;
        let extra = lines(&answer.headers);
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n{extra}\r\n"
        );
        // Held back and sent with the first chunk: a packet for each would be measured as ours.
        let mut pending = head.into_bytes();
        for (number, chunk) in chunks.iter().enumerate() {
            match answer.end {
                End::Cut(at) if number == at => {
                    self.writer.write_all(&pending).await?;
                    return Ok(Next::Close);
                }
                End::Short(at) if number == at => break,
                End::Hang(at) if number == at => {
                    self.writer.write_all(&pending).await?;
                    return self.while_there(std::future::pending()).await;
                }
                End::Whole | End::Cut(_) | End::Short(_) | End::Hang(_) => {}
            }
            if number > 0 && answer.gates.iter().any(|(at, _)| *at == number) {
                self.writer.write_all(&pending).await?;
                pending.clear();
                self.gates(answer, number).await?;
            }
            for piece in chunk.chunks(answer.split.unwrap_or(usize::MAX)) {
                pending.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                pending.extend_from_slice(piece);
                pending.extend_from_slice(b"\r\n");
                if answer.split.is_some() {
                    self.writer.write_all(&pending).await?;
                    pending.clear();
                    tokio::task::yield_now().await;
                }
            }
        }
        pending.extend_from_slice(b"0\r\n\r\n");
        self.last(&pending).await
    }

    /// Sends the last of an answer.
    async fn last(&mut self, bytes: &[u8]) -> io::Result<Next> {
        // Before, not after: the client may be at work before the call has returned.
        self.sent = Some(Instant::now());
        self.writer.write_all(bytes).await?;
        Ok(Next::Keep)
    }

    async fn gates(&mut self, answer: &Answer, at: usize) -> io::Result<()> {
        for (_, gate) in answer.gates.iter().filter(|(number, _)| *number == at) {
            self.while_there(gate.pass()).await?;
        }
        Ok(())
    }

    async fn wait(&mut self, delay: Duration) -> io::Result<()> {
        // Even a sleep of zero takes until the timer's next tick.
        match delay.is_zero() {
            true => Ok(()),
            false => self.while_there(tokio::time::sleep(delay)).await,
        }
    }

    /// Waits, but not longer than the client.
    async fn while_there<T>(&mut self, wait: impl Future<Output = T>) -> io::Result<T> {
        let mut wait = std::pin::pin!(wait);
        loop {
            tokio::select! {
                biased;
                done = &mut wait => return Ok(done),
                read = self.reader.read_buf(&mut self.buffer) => if read? == 0 {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
            }
        }
    }
}

fn lines(headers: &[(String, String)]) -> String {
    headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
}
