//! What a client asks of an HTTP proxy: a tunnel, or one request that is passed on.

/// What a client asked of the proxy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HttpRequest {
    pub host: String,
    pub port: u16,
    /// The head to send on; `None` for a tunnel.
    pub forward: Option<String>,
}

impl HttpRequest {
    pub(super) fn parse(head: &str) -> Option<Self> {
        // A server may take what we do not for the end of a line, and read a second `Host` there.
        if head.replace("\r\n", "").chars().any(|c| c.is_control() && c != '\t') {
            return None;
        }
        let (line, headers) = head.split_once("\r\n")?;
        let mut words = line.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") {
            return None;
        }
        if method == "CONNECT" {
            let (host, port) = host_and_port(target, None)?;
            return Some(Self { host, port, forward: None });
        }
        let scheme_end = "http://".len();
        if !target.get(..scheme_end)?.eq_ignore_ascii_case("http://") {
            return None;
        }
        let target = &target[scheme_end..];
        let path = target.find(['/', '?']).unwrap_or(target.len());
        let (authority, path) = target.split_at(path);
        let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let (host, port) = host_and_port(authority, Some(80))?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mut forward = format!("{method} {slash}{path} {version}\r\nHost: {authority}\r\n");
        for header in headers.split("\r\n").filter(|header| !header.is_empty()) {
            let name = header_name(header)?.to_ascii_lowercase();
            let ours = ["host", "connection", "keep-alive"].contains(&name.as_str());
            if !ours && !name.starts_with("proxy-") {
                forward.push_str(header);
                forward.push_str("\r\n");
            }
        }
        forward.push_str("Connection: close\r\n\r\n");
        Some(Self { host, port, forward: Some(forward) })
    }
}

/// The name of a header. A line with anything else before its colon is refused: servers differ in what they make of
/// `Host : other` and of a line that continues the one before.
fn header_name(line: &str) -> Option<&str> {
    let (name, _) = line.split_once(':')?;
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    (!name.is_empty() && name.chars().all(is_token)).then_some(name)
}

fn host_and_port(authority: &str, default: Option<u16>) -> Option<(String, u16)> {
    let colon = authority.rfind(':').filter(|&colon| !authority[colon..].contains(']'));
    let (host, port) = match colon {
        Some(colon) => (&authority[..colon], authority[colon + 1..].parse().ok()?),
        None => (authority, default?),
    };
    let plain = !host.is_empty() && host.chars().all(|c| c.is_ascii_graphic() && c != '/');
    plain.then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_whole_url_becomes_a_request_without_headers_for_the_proxy() {
        let head = "GET http://user@Example.org:8080/a?b HTTP/1.1\r\nHost: other\r\nAccept: */*\r\n\
                    Proxy-Connection: keep-alive\r\nConnection: keep-alive\r\n\r\n";
        let forward = "GET /a?b HTTP/1.1\r\nHost: Example.org:8080\r\nAccept: */*\r\n\
                       Connection: close\r\n\r\n";
        let expected = HttpRequest {
            host: "Example.org".to_owned(),
            port: 8080,
            forward: Some(forward.to_owned()),
        };
        assert_eq!(HttpRequest::parse(head), Some(expected));
    }

    #[test]
    fn a_head_with_other_ends_of_lines_is_refused() {
        for end in ["\n", "\r", "\0", "\u{b}", "\u{85}"] {
            let head = format!(
                "GET http://a.org/ HTTP/1.1\r\nAccept: */*{end}Host: b.org\r\nX: y\r\n\r\n"
            );
            assert_eq!(HttpRequest::parse(&head), None, "{end:?}");
        }
    }

    #[test]
    fn a_header_that_servers_read_differently_is_refused() {
        for header in ["Host : b.org", " b.org", "\tb.org", "Host", ": b.org", "Ho st: b.org"] {
            let head = format!("GET http://a.org/ HTTP/1.1\r\n{header}\r\nAccept: */*\r\n\r\n");
            assert_eq!(HttpRequest::parse(&head), None, "{header:?}");
        }
    }

    #[test]
    fn a_tunnel_names_its_port_and_addresses_keep_their_brackets() {
        let parse = |line: &str| HttpRequest::parse(&format!("{line} HTTP/1.1\r\n\r\n"));
        let asked = parse("CONNECT [2606:4700::1]:443").unwrap();
        assert_eq!((asked.host.as_str(), asked.port, asked.forward), ("[2606:4700::1]", 443, None));
        for line in ["CONNECT example.org", "GET /path", "GET https://a/", "CONNECT :80", "GET"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn reading_a_head_never_panics(head in ".{0,200}") {
            let _ = HttpRequest::parse(&head);
            let _ = HttpRequest::parse(&format!("{head}\r\n\r\n"));
            let _ = HttpRequest::parse(&format!("GET http://{head} HTTP/1.1\r\n\r\n"));
        }
    }
}
