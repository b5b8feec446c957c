//! The cookie that keeps a browser signed in: who it is and since when, signed. The server keeps nothing, so a
//! restart signs nobody out; another token in the token's file signs everybody out.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, header};
use jiff::Timestamp;
use ring::hmac;

use super::token;

/// How long a browser stays signed in without a request.
pub const SESSION_SECONDS: i64 = 12 * 60 * 60;

/// How long it stays signed in at all.
const LONGEST_SECONDS: i64 = 30 * 24 * 60 * 60;

/// The age at which a cookie is replaced by a younger one.
const RENEW_SECONDS: i64 = 60 * 60;

/// Signed-out cookies that are remembered; each for as long as it would have been valid.
const MAX_SIGNED_OUT: usize = 10_000;

/// The longest cookie of ours.
const MAX_BYTES: usize = 1024;

/// Makes and reads cookies.
pub struct Cookies {
    key: hmac::Key,
    name: String,
    attributes: &'static str,
    signed_out: Mutex<HashMap<String, i64>>,
}

/// A browser that is signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub user: String,
    /// Tells it from others of the same user.
    id: String,
    /// When the person signed in.
    started: i64,
    /// When this cookie was made.
    issued: i64,
}

impl Cookies {
    pub(super) fn new(key: hmac::Key, port: u16, is_tls: bool) -> Self {
        let tag = hmac::sign(&key, b"name");
        let instance: String =
            tag.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let name = format!("windlass_{port}_{instance}");
        let attributes = if is_tls { SECURE_ATTRIBUTES } else { ATTRIBUTES };
        Self { key, name, attributes, signed_out: Mutex::default() }
    }

    /// The value of our cookie among those that a browser sends.
    pub(super) fn find<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let sent = headers.get_all(header::COOKIE).iter().filter_map(|one| one.to_str().ok());
        let mut pairs = sent.flat_map(|one| one.split(';')).filter_map(|one| one.split_once('='));
        pairs.find(|(name, _)| name.trim() == self.name).map(|(_, value)| value.trim())
    }

    /// Who a cookie stands for, while it is valid.
    pub(super) fn read(&self, value: &str, now: Timestamp) -> Option<Session> {
        if value.len() > MAX_BYTES {
            return None;
        }
        let (payload, signature) = value.rsplit_once('.')?;
        hmac::verify(&self.key, payload.as_bytes(), &unhex(signature)?).ok()?;
        let mut parts = payload.split('.');
        let user = String::from_utf8(unhex(parts.next()?)?).ok()?;
        let (started, issued) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let id = parts.next()?.to_owned();
        let now = now.as_second();
        let is_valid = now < issued + SESSION_SECONDS && now < started + LONGEST_SECONDS;
        let session = Session { user, id, started, issued };
        (is_valid && !self.is_signed_out(&session.id)).then_some(session)
    }

    /// A younger cookie, where this one has become old.
    pub(super) fn renew(&self, session: &Session, now: Timestamp) -> Option<String> {
        let now = now.as_second();
        (now >= session.issued + RENEW_SECONDS)
            .then(|| self.header(&Session { issued: now, ..session.clone() }))
    }

    /// The `Set-Cookie` of a user who signs in.
    pub fn begin(&self, user: &str, now: Timestamp) -> std::io::Result<String> {
        let now = now.as_second();
        let id = token::random()?;
        Ok(self.header(&Session { user: user.to_owned(), id, started: now, issued: now }))
    }

    /// Ends the session of a request, and the `Set-Cookie` that removes its cookie.
    pub fn end(&self, headers: &HeaderMap, now: Timestamp) -> String {
        if let Some(session) = self.find(headers).and_then(|value| self.read(value, now)) {
            let mut ended = self.signed_out.lock().unwrap_or_else(PoisonError::into_inner);
            ended.retain(|_, until| *until > now.as_second());
            if ended.len() < MAX_SIGNED_OUT {
                ended.insert(session.id, session.started + LONGEST_SECONDS);
            }
        }
        format!("{}=; {}; Max-Age=0", self.name, self.attributes)
    }

    fn is_signed_out(&self, id: &str) -> bool {
        self.signed_out.lock().unwrap_or_else(PoisonError::into_inner).contains_key(id)
    }

    fn header(&self, session: &Session) -> String {
        let Session { user, id, started, issued } = session;
        let payload = format!("{}.{started}.{issued}.{id}", hex(user.as_bytes()));
        let signature = hmac::sign(&self.key, payload.as_bytes());
        let value = format!("{payload}.{}", hex(signature.as_ref()));
        format!("{}={value}; {}; Max-Age={SESSION_SECONDS}", self.name, self.attributes)
    }
}

/// No script reads it, and no other site's page sends it.
const ATTRIBUTES: &str = "Path=/; HttpOnly; SameSite=Strict";

/// The same, and never over a connection that others can read.
const SECURE_ATTRIBUTES: &str = "Path=/; HttpOnly; SameSite=Strict; Secure";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookies() -> Cookies {
        Cookies::new(hmac::Key::new(hmac::HMAC_SHA256, b"key"), 7878, false)
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn value(header: &str) -> &str {
        header.split_once('=').unwrap().1.split(';').next().unwrap()
    }

    #[test]
    fn a_cookie_expires_and_is_renewed_before() {
        let cookies = cookies();
        let header = cookies.begin("ada", at(1000)).unwrap();
        assert!(header.contains("HttpOnly; SameSite=Strict"), "{header}");
        let session = cookies.read(value(&header), at(1001)).unwrap();
        assert_eq!(session.user, "ada");
        assert_eq!(cookies.renew(&session, at(1001)), None);
        let renewed = cookies.renew(&session, at(1000 + RENEW_SECONDS)).unwrap();
        let expiry = 1000 + SESSION_SECONDS;
        assert!(cookies.read(value(&header), at(expiry)).is_none());
        assert!(cookies.read(value(&renewed), at(expiry)).is_some());
        // However often it is renewed, it ends.
        assert!(cookies.read(value(&renewed), at(1000 + LONGEST_SECONDS)).is_none());
    }

    #[test]
    fn a_changed_cookie_is_nobodys() {
        let cookies = cookies();
        let header = cookies.begin("ada", at(1000)).unwrap();
        let whole = value(&header);
        for at_byte in 0..whole.len() {
            let mut changed = whole.as_bytes().to_vec();
            changed[at_byte] = if changed[at_byte] == b'0' { b'1' } else { b'0' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(cookies.read(&changed, at(1001)).is_none(), "{changed}");
        }
        for bad in ["", ".", "....", "é", "0.0.0.0.00"] {
            assert!(cookies.read(bad, at(1001)).is_none(), "{bad}");
        }
    }

    #[test]
    fn who_signs_out_is_out() {
        let cookies = cookies();
        let header = cookies.begin("ada", at(1000)).unwrap();
        let pair = header.split(';').next().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, format!("other=1; {pair}").parse().unwrap());
        assert!(cookies.end(&headers, at(1001)).contains("Max-Age=0"));
        assert!(cookies.read(value(&header), at(1002)).is_none());
    }
}
