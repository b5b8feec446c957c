//! The name of the server in the first message of a TLS connection.

/// The most that is read of a first message. Programs send less than a tenth of it.
pub(super) const MAX_HELLO_BYTES: usize = 64 * 1024;

/// What the first bytes of a connection are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hello {
    /// So far the beginning of a TLS hello, or nothing at all.
    Incomplete,
    /// The connection does not begin as TLS does.
    Other,
    /// The beginning of a TLS hello that is longer than any program's.
    TooLong,
    /// A TLS hello, with the name of the server that it asks for, if it has one.
    Tls(Option<String>),
}

/// Looks at everything that a client has sent so far.
pub(super) fn read(sent: &[u8]) -> Hello {
    match message(sent) {
        Ok(Some(body)) => server_name(&body).map_or(Hello::Other, Hello::Tls),
        Ok(None) if sent.len() < MAX_HELLO_BYTES => Hello::Incomplete,
        // Whether it names another host is not known.
        Ok(None) => Hello::TooLong,
        Err(NotTls) => Hello::Other,
    }
}

struct NotTls;

/// The body of the first handshake message, which may be spread over several records. `None` when more is to come.
fn message(mut sent: &[u8]) -> Result<Option<Vec<u8>>, NotTls> {
    const HANDSHAKE: u8 = 22;
    const CLIENT_HELLO: u8 = 1;
    let mut message = Vec::new();
    loop {
        if let [kind, a, b, c, body @ ..] = message.as_slice() {
            if *kind != CLIENT_HELLO {
                return Err(NotTls);
            }
            let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            if let Some(body) = body.get(..length) {
                return Ok(Some(body.to_vec()));
            }
        }
        match sent {
            [] => return Ok(None),
            [kind, ..] if *kind != HANDSHAKE => return Err(NotTls),
            [_, major, ..] if *major != 3 => return Err(NotTls),
            [_, _, _, high, low, rest @ ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                let Some((record, rest)) = rest.split_at_checked(length) else { return Ok(None) };
                if record.is_empty() {
                    return Err(NotTls);
                }
                message.extend_from_slice(record);
                sent = rest;
            }
            _ => return Ok(None),
        }
    }
}

/// The name in a hello's body; `None` when this is not one.
fn server_name(body: &[u8]) -> Option<Option<String>> {
    const SERVER_NAME: u16 = 0;
    const VERSION_AND_RANDOM: usize = 34;
    let mut rest = Bytes(body.get(VERSION_AND_RANDOM..)?);
    rest.vector(1)?; // the session
    rest.vector(2)?; // ciphers
    rest.vector(1)?; // compressions
    if rest.0.is_empty() {
        return Some(None);
    }
    let mut extensions = Bytes(rest.vector(2)?);
    let mut name = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number(2)?;
        let data = extensions.vector(2)?;
        if kind == usize::from(SERVER_NAME) {
            // A second one could be what the server takes.
            if name.is_some() {
                return None;
            }
            name = Some(host_name(data)?);
        }
    }
    Some(name)
}

/// The one host name of the extension.
fn host_name(data: &[u8]) -> Option<String> {
    const HOST_NAME: usize = 0;
    let mut names = Bytes(Bytes(data).vector(2)?);
    if names.number(1)? != HOST_NAME {
        return None;
    }
    let name = names.vector(2)?;
    let is_alone = names.0.is_empty() && !name.is_empty() && name.is_ascii();
    is_alone.then(|| String::from_utf8_lossy(name).into_owned())
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn number(&mut self, size: usize) -> Option<usize> {
        let (head, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(head.iter().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    }

    /// Bytes behind their length, which takes `size` bytes.
    fn vector(&mut self, size: usize) -> Option<&'a [u8]> {
        let length = self.number(size)?;
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vector(size: usize, bytes: &[u8]) -> Vec<u8> {
        [&bytes.len().to_be_bytes()[8 - size..], bytes].concat()
    }

    fn hello(names: &[&str]) -> Vec<u8> {
        let extension = |name: &&str| {
            let entry = [vec![0], vector(2, name.as_bytes())].concat();
            [vec![0, 0], vector(2, &vector(2, &entry))].concat()
        };
        let extensions: Vec<u8> =
            [vec![0, 43, 0, 1, 2], names.iter().flat_map(extension).collect()].concat();
        let body = [
            vec![3; 34],
            vector(1, &[7; 32]),
            vector(2, &[0x13, 1]),
            vector(1, &[0]),
            vector(2, &extensions),
        ]
        .concat();
        [vec![1], vector(3, &body)].concat()
    }

    fn records(message: &[u8], size: usize) -> Vec<u8> {
        let record = |part: &[u8]| [vec![22, 3, 1], vector(2, part)].concat();
        message.chunks(size).flat_map(record).collect()
    }

    #[test]
    fn the_name_is_found_however_the_hello_is_cut() {
        let message = hello(&["docs.example.org"]);
        for size in [1, 7, 100, 16_000] {
            let sent = records(&message, size);
            let expected = Hello::Tls(Some("docs.example.org".to_owned()));
            assert_eq!(read(&sent), expected, "{size}");
            assert_eq!(read(&[sent.as_slice(), b"later"].concat()), expected);
            for end in 0..sent.len() {
                assert_eq!(read(&sent[..end]), Hello::Incomplete, "{size} {end}");
            }
        }
        assert_eq!(read(&records(&hello(&[]), 4000)), Hello::Tls(None));
    }

    #[test]
    fn a_hello_of_endless_length_is_still_one_of_tls() {
        let message = [vec![1], vector(3, &vec![0; 100_000])].concat();
        let sent = records(&message, 16_000);
        assert_eq!(read(&sent[..MAX_HELLO_BYTES - 1]), Hello::Incomplete);
        assert_eq!(read(&sent[..MAX_HELLO_BYTES]), Hello::TooLong);
    }

    #[test]
    fn what_is_not_one_plain_hello_has_no_name() {
        for sent in
            [b"SSH-2.0-OpenSSH\r\n".as_slice(), b"GET / HTTP/1.1", &[22, 1], &[22, 3, 1, 0, 0]]
        {
            assert_eq!(read(sent), Hello::Other, "{sent:?}");
        }
        assert_eq!(read(&records(&hello(&["a.org", "b.org"]), 4000)), Hello::Other);
    }

    proptest! {
        #[test]
        fn reading_never_panics(sent in proptest::collection::vec(any::<u8>(), 0..200)) {
            read(&sent);
            read(&records(&sent, 50));
            read(&records(&[vec![1, 0, 0, sent.len() as u8], sent].concat(), 300));
        }
    }
}
