//! The first checks of every request: is it meant for this server, does it come from one of our pages, who sends it,
//! and are they allowed to.
//!
//! The order matters. A page of another site can make a browser send requests here, under a name that leads here (DNS
//! rebinding), with our cookie. The `Host` list stops the first, `Origin`, `Sec-Fetch-Site` and `SameSite` the second,
//! and a header that only our own script adds the rest.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use crate::access_log::AccessRecord;
use crate::auth::{Access, Identity, SignIn, SignInFailure, User, Via};
use crate::listen::MAX_HEAD_BYTES;
use crate::problem::Problem;
use crate::state::AppState;
use crate::{client, cookie_stream};

/// Where a request comes from; the listener adds it.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// Who sends a request: the peer, or whom a trusted proxy names. The guard adds it.
#[derive(Clone, Copy, Debug)]
pub struct Client(pub IpAddr);

/// The header that a change by cookie must have. A page of another site cannot add it.
pub const CHANGE_HEADER: HeaderName = HeaderName::from_static("x-windlass");

/// Paths that need no user: signing in, what the login page is made of, and whether the server is well.
const PUBLIC: &[&str] = &["/login", "/v1/login", "/healthz", "/readyz"];

/// What public pages are made of; nothing secret is below it.
const PUBLIC_FILES: &str = "/assets/";

/// Passes a request on, or says why not.
pub async fn guard(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let peer = request.extensions().get::<Peer>().map_or(NOWHERE, |peer| peer.0.ip());
    let from = client::of(&state.trusted_proxies, peer, request.headers());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let agent = request.headers().get(header::USER_AGENT).cloned();
    let checked = check(&state, &request, from);
    let (user, mut response) = match checked {
        Ok(Passed { user, session, set_cookie }) => {
            if let Some(user) = &user {
                request.extensions_mut().insert(user.clone());
            }
            request.extensions_mut().insert(Client(from));
            let mut response = next.run(request).await;
            if let Some(session) = session {
                response = cookie_stream::bound_to(session, &state, response);
            }
            if let Some(cookie) = set_cookie.and_then(|cookie| HeaderValue::try_from(cookie).ok()) {
                // A handler that signs in or out has its own word.
                response.headers_mut().entry(header::SET_COOKIE).or_insert(cookie);
            }
            (user, response)
        }
        Err(refused) => (None, *refused),
    };
    add_headers(response.headers_mut());
    let user = user.or_else(|| response.extensions_mut().remove::<User>());
    state.access_log.write(AccessRecord {
        at: state.now(),
        user: user.map(|user| user.name),
        method,
        path,
        status: response.status().as_u16(),
        took: began.elapsed(),
        from,
        agent,
    });
    response
}

/// A request without a peer comes from a test of the routes alone.
const NOWHERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);

/// A request that may be looked at.
struct Passed {
    user: Option<User>,
    /// The browser's session; `None` without a cookie.
    session: Option<SignIn>,
    /// A younger cookie for the browser.
    set_cookie: Option<String>,
}

fn check(state: &AppState, request: &Request, from: IpAddr) -> Result<Passed, Box<Response>> {
    let refuse = |problem: Problem| Box::new(problem.into_response());
    let (headers, uri, method) = (request.headers(), request.uri(), request.method());
    check_host(&state.names, headers, uri).map_err(refuse)?;
    check_origin(&state.names, request).map_err(refuse)?;
    check_head(headers, uri).map_err(refuse)?;
    let is_change = !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    if is_change {
        check_media_type(headers).map_err(refuse)?;
    }
    let is_public = PUBLIC.contains(&uri.path()) || uri.path().starts_with(PUBLIC_FILES);
    let Identity { user, session, set_cookie } =
        match state.auth.identify(headers, from, state.now()) {
            Ok(identity) => identity,
            // A wrong token is refused everywhere: whoever sends it should know.
            Err(SignInFailure::Nobody | SignInFailure::OldCookie) if is_public => {
                return Ok(Passed { user: None, session: None, set_cookie: None });
            }
            Err(refused) => return Err(Box::new(not_signed_in(&state.base, &refused, request))),
        };
    if is_change && !is_public {
        if user.via == Via::Cookie && !headers.contains_key(CHANGE_HEADER) {
            let detail = "a change by cookie needs the header `X-Windlass`";
            return Err(refuse(Problem::forbidden("missing-header", detail)));
        }
        if user.access < Access::Operator && !OWN_PATHS.contains(&uri.path()) {
            let detail = format!("`{}` may look and not change", user.name);
            return Err(refuse(Problem::forbidden("not-allowed", detail)));
        }
    }
    Ok(Passed { user: Some(user), session, set_cookie })
}

/// Changes that a user makes to nothing but their own session.
const OWN_PATHS: &[&str] = &["/v1/logout", "/v1/login-links"];

/// A browser is led to the login page, which leads to the wanted page afterwards; a program gets an error.
fn not_signed_in(base: &str, refused: &SignInFailure, request: &Request) -> Response {
    let (uri, headers) = (request.uri(), request.headers());
    let wants_page = request.method() == Method::GET
        && !uri.path().starts_with("/v1/")
        && text_of(headers, header::ACCEPT).contains("text/html");
    if wants_page && matches!(refused, SignInFailure::Nobody | SignInFailure::OldCookie) {
        let wanted = uri.path_and_query().map_or("/", |wanted| wanted.as_str());
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let query = query.append_pair("to", wanted).finish();
        return Redirect::to(&format!("{base}/login?{query}")).into_response();
    }
    problem_of(refused).into_response()
}

/// Why somebody is not signed in, in words.
pub fn problem_of(refused: &SignInFailure) -> Problem {
    match refused {
        SignInFailure::Nobody => Problem::not_signed_in(
            "send `Authorization: Bearer TOKEN` (the file `token` in the data directory), or sign in with \
             the link that `windlass open` prints",
        ),
        SignInFailure::WrongToken => Problem::new(
            StatusCode::UNAUTHORIZED,
            "wrong-token",
            "this token or code is not valid; `windlass open` prints a new link",
        ),
        SignInFailure::OldCookie => Problem::new(
            StatusCode::UNAUTHORIZED,
            "session-expired",
            "sign in again with the link that `windlass open` prints",
        ),
        SignInFailure::TooMany { retry_after } => Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too-many-failures",
            "too many wrong tokens came from this address",
        )
        .after(*retry_after),
    }
}

fn check_host(names: &Names, headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
    let refused =
        |detail: String| Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "foreign-host", detail));
    // HTTP/2 has it in the request line, HTTP/1 may have it there too; both count.
    let in_line = uri.authority().map(|authority| authority.as_str());
    let in_headers: Vec<_> = headers.get_all(header::HOST).iter().collect();
    let in_header = match in_headers.as_slice() {
        [] => None,
        [only] => Some(only.to_str().unwrap_or("")),
        [..] => return refused("the request names several hosts".to_owned()),
    };
    let all: Vec<_> = in_line.into_iter().chain(in_header).collect();
    match all.iter().find(|host| !names.allow(host)) {
        Some(foreign) => {
            refused(format!("this server is not `{foreign}`; see `server.allowed_hosts`"))
        }
        None if all.is_empty() => refused("the request names no host".to_owned()),
        None => Ok(()),
    }
}

/// Headers that say who sends a request, from where, and what it is. One that is sent twice says two things, of which a
/// proxy may have believed the other.
const SINGLE: &[&str] = &[
    "authorization",
    "content-type",
    "idempotency-key",
    "last-event-id",
    "origin",
    "sec-fetch-dest",
    "sec-fetch-mode",
    "sec-fetch-site",
];

/// Refuses a head that says something twice, or too much.
fn check_head(headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
    if let Some(name) = SINGLE.iter().find(|name| headers.get_all(**name).iter().nth(1).is_some()) {
        let detail = format!("the header `{name}` is sent twice");
        return Err(Problem::bad_request(detail));
    }
    let address = uri.path_and_query().map_or(0, |address| address.as_str().len());
    let fields = headers.iter().map(|(name, value)| name.as_str().len() + value.len());
    match fields.sum::<usize>() + address > MAX_HEAD_BYTES {
        true => {
            let detail = format!("the head of the request is over {MAX_HEAD_BYTES} bytes");
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            Err(Problem::new(status, "head-too-large", detail))
        }
        false => Ok(()),
    }
}

fn check_origin(names: &Names, request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    let foreign = |what: String| Err(Problem::forbidden("foreign-origin", what));
    for origin in headers.get_all(header::ORIGIN) {
        let text = origin.to_str().unwrap_or("");
        let authority =
            text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")).unwrap_or("");
        if !names.allow(authority) {
            return foreign(format!("requests from pages of `{text}` are not accepted"));
        }
    }
    // Another port of this machine is the same site to a browser, and sends our cookie.
    match text_of(headers, HeaderName::from_static("sec-fetch-site")) {
        "" | "same-origin" | "none" => Ok(()),
        _ if is_navigation(request) => Ok(()),
        site => foreign(format!("requests from another site's page ({site}) are not accepted")),
    }
}

/// Whether a person follows a link to a page of ours, which changes nothing.
fn is_navigation(request: &Request) -> bool {
    let headers = request.headers();
    request.method() == Method::GET
        && !request.uri().path().starts_with("/v1/")
        && text_of(headers, HeaderName::from_static("sec-fetch-mode")) == "navigate"
        && text_of(headers, HeaderName::from_static("sec-fetch-dest")) == "document"
}

/// Refuses what a form of another site can send, and what no route takes.
fn check_media_type(headers: &HeaderMap) -> Result<(), Problem> {
    let has_body = headers.contains_key(header::TRANSFER_ENCODING)
        || !matches!(text_of(headers, header::CONTENT_LENGTH), "" | "0");
    let sent = text_of(headers, header::CONTENT_TYPE);
    let media = sent.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    if media == "application/json" || (media.is_empty() && !has_body) {
        return Ok(());
    }
    let detail = format!("`{media}` is not accepted; send `application/json`");
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-json", detail))
}

fn text_of(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

/// What every answer says to a browser. A page that needs more says so itself.
fn add_headers(headers: &mut HeaderMap) {
    for (name, value) in ANSWER_HEADERS {
        let name = HeaderName::from_static(name);
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

const ANSWER_HEADERS: &[(&str, &str)] = &[
    ("cache-control", "no-store"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
];

/// The names under which a server is reached, as a `Host` header has them.
#[derive(Clone, Debug)]
pub struct Names(Vec<String>);

impl Names {
    /// The names of a server at this address; `more` come from the configuration.
    pub fn new(address: SocketAddr, more: &[String]) -> Self {
        let (ip, port) = (address.ip(), address.port());
        let mut names = Vec::new();
        if ip.is_loopback() || ip.is_unspecified() {
            names.extend([
                format!("127.0.0.1:{port}"),
                format!("localhost:{port}"),
                format!("[::1]:{port}"),
            ]);
        }
        if !ip.is_unspecified() {
            names.push(address.to_string());
        }
        for name in more.iter().map(|name| name.to_ascii_lowercase()) {
            // Behind a proxy a name has the proxy's port, which is mostly left out.
            if !has_port(&name) {
                names.push(format!("{name}:{port}"));
            }
            names.push(name);
        }
        let usual: Vec<_> = [":80", ":443"]
            .iter()
            .flat_map(|port| names.iter().filter_map(move |name| name.strip_suffix(*port)))
            .map(str::to_owned)
            .collect();
        names.extend(usual);
        Self(names)
    }

    /// The one that is shown to people.
    pub fn first(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    fn allow(&self, host: &str) -> bool {
        self.0.iter().any(|name| name.eq_ignore_ascii_case(host))
    }
}

/// Whether a name ends in a port; `[::1]` does not.
fn has_port(name: &str) -> bool {
    name.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
        && !name.ends_with(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(address: &str, more: &[&str]) -> Names {
        let more: Vec<_> = more.iter().map(|&name| name.to_owned()).collect();
        Names::new(address.parse().unwrap(), &more)
    }

    #[test]
    fn only_own_names_are_answered() {
        let local = names("127.0.0.1:7878", &[]);
        for own in ["127.0.0.1:7878", "localhost:7878", "LOCALHOST:7878", "[::1]:7878"] {
            assert!(local.allow(own), "{own}");
        }
        for foreign in
            ["", "evil.example", "localhost", "localhost:7879", "127.0.0.1:78780", "0.0.0.0:7878"]
        {
            assert!(!local.allow(foreign), "{foreign}");
        }
        let open = names("0.0.0.0:443", &["box.example", "other.example:8443"]);
        for own in ["box.example", "box.example:443", "localhost", "other.example:8443"] {
            assert!(open.allow(own), "{own}");
        }
        for foreign in ["other.example", "0.0.0.0:443", "192.168.0.7:443"] {
            assert!(!open.allow(foreign), "{foreign}");
        }
        assert_eq!(open.first(), "127.0.0.1:443");
    }
}
