//! The cookie that keeps a browser signed in: who it is and since when, signed together with the hash of the user's token.
//! The server keeps only who has signed out, in a file, so a restart signs nobody out and nobody in. Another token of a
//! user's signs that user out; another token in the token's file signs everybody out.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, header};
use jiff::Timestamp;
use ring::hmac;
use tokio::sync::watch;

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
    /// How many have signed out since the server started.
    sign_outs: watch::Sender<u64>,
    /// Where they are kept.
    file: PathBuf,
}

/// A browser that is signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignIn {
    pub user: String,
    /// Tells it from others of the same user.
    id: String,
    /// When the person signed in.
    started: i64,
    /// When this cookie was made.
    issued: i64,
    /// The hash of the user's token.
    token: String,
}

impl Cookies {
    /// The cookies of a server; those that were signed out are in the file.
    pub(super) fn open(key: hmac::Key, port: u16, is_tls: bool, file: PathBuf) -> io::Result<Self> {
        let text = match fs::read_to_string(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read?,
        };
        let entry = |line: &str| {
            let (id, until) = line.split_once(' ')?;
            Some((id.to_owned(), until.parse().ok()?))
        };
        let signed_out = Mutex::new(text.lines().filter_map(entry).collect());
        let tag = hmac::sign(&key, b"name");
        let instance: String =
            tag.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let name = format!("windlass_{port}_{instance}");
        let attributes = if is_tls { SECURE_ATTRIBUTES } else { ATTRIBUTES };
        let sign_outs = watch::Sender::new(0);
        Ok(Self { key, name, attributes, signed_out, sign_outs, file })
    }

    /// The value of our cookie among those that a browser sends.
    pub(super) fn find<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let sent = headers.get_all(header::COOKIE).iter().filter_map(|one| one.to_str().ok());
        let mut pairs = sent.flat_map(|one| one.split(';')).filter_map(|one| one.split_once('='));
        pairs.find(|(name, _)| name.trim() == self.name).map(|(_, value)| value.trim())
    }

    /// Who a cookie stands for, while it is valid; `token_of` knows the hash of a user's token.
    pub(super) fn read(
        &self,
        value: &str,
        now: Timestamp,
        token_of: impl FnOnce(&str) -> Option<String>,
    ) -> Option<SignIn> {
        if value.len() > MAX_BYTES {
            return None;
        }
        let (payload, signature) = value.rsplit_once('.')?;
        let mut parts = payload.split('.');
        let user = String::from_utf8(unhex(parts.next()?)?).ok()?;
        let token = token_of(&user)?;
        let signed = format!("{payload}.{token}");
        hmac::verify(&self.key, signed.as_bytes(), &unhex(signature)?).ok()?;
        let (started, issued) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let id = parts.next()?.to_owned();
        let session = SignIn { user, id, started, issued, token };
        self.is_valid(&session, now).then_some(session)
    }

    /// Whether a session has neither expired nor been signed out.
    pub(super) fn is_valid(&self, session: &SignIn, now: Timestamp) -> bool {
        let (now, SignIn { started, issued, .. }) = (now.as_second(), session);
        now < issued + SESSION_SECONDS
            && now < started + LONGEST_SECONDS
            && !self.is_signed_out(&session.id)
    }

    /// Changes whenever somebody signs out.
    pub(super) fn sign_outs(&self) -> watch::Receiver<u64> {
        self.sign_outs.subscribe()
    }

    /// A younger cookie, where this one has become old.
    pub(super) fn renew(&self, session: &SignIn, now: Timestamp) -> Option<String> {
        let now = now.as_second();
        (now >= session.issued + RENEW_SECONDS)
            .then(|| self.header(&SignIn { issued: now, ..session.clone() }))
    }

    /// The `Set-Cookie` of a user who signs in with a token of this hash, or with a link.
    pub(super) fn begin(&self, user: &str, token: String, now: Timestamp) -> io::Result<String> {
        let now = now.as_second();
        let (user, id) = (user.to_owned(), token::random()?);
        Ok(self.header(&SignIn { user, id, started: now, issued: now, token }))
    }

    /// Ends a session, also for a server that is started later.
    pub(super) fn end(&self, session: SignIn, now: Timestamp) -> io::Result<()> {
        let mut ended = self.signed_out.lock().unwrap_or_else(PoisonError::into_inner);
        ended.retain(|_, until| *until > now.as_second());
        if ended.len() < MAX_SIGNED_OUT {
            ended.insert(session.id, session.started + LONGEST_SECONDS);
        }
        self.sign_outs.send_modify(|count| *count += 1);
        let lines: String = ended.iter().map(|(id, until)| format!("{id} {until}\n")).collect();
        // Written beside and renamed, so that a reader finds the old text or the new one.
        let part = self.file.with_extension("part");
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        file.write_all(lines.as_bytes())?;
        file.sync_all()?;
        fs::rename(&part, &self.file)
    }

    /// The `Set-Cookie` that removes the cookie.
    pub(super) fn removal(&self) -> String {
        format!("{}=; {}; Max-Age=0", self.name, self.attributes)
    }

    fn is_signed_out(&self, id: &str) -> bool {
        self.signed_out.lock().unwrap_or_else(PoisonError::into_inner).contains_key(id)
    }

    fn header(&self, session: &SignIn) -> String {
        let SignIn { user, id, started, issued, token } = session;
        let payload = format!("{}.{started}.{issued}.{id}", hex(user.as_bytes()));
        let signature = hmac::sign(&self.key, format!("{payload}.{token}").as_bytes());
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

    fn cookies() -> (tempfile::TempDir, Cookies) {
        let directory = tempfile::tempdir().unwrap();
        let cookies = open(&directory);
        (directory, cookies)
    }

    fn open(directory: &tempfile::TempDir) -> Cookies {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"key");
        Cookies::open(key, 7878, false, directory.path().join("signed-out")).unwrap()
    }

    /// What is known of the only user's token.
    fn token(_: &str) -> Option<String> {
        Some("hash".to_owned())
    }

    fn begin(cookies: &Cookies) -> String {
        cookies.begin("ada", "hash".to_owned(), at(1000)).unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn value(header: &str) -> &str {
        header.split_once('=').unwrap().1.split(';').next().unwrap()
    }

    #[test]
    fn a_cookie_expires_and_is_renewed_before() {
        let (_directory, cookies) = cookies();
        let header = begin(&cookies);
        assert!(header.contains("HttpOnly; SameSite=Strict"), "{header}");
        let session = cookies.read(value(&header), at(1001), token).unwrap();
        assert_eq!(session.user, "ada");
        assert_eq!(cookies.renew(&session, at(1001)), None);
        let renewed = cookies.renew(&session, at(1000 + RENEW_SECONDS)).unwrap();
        let expiry = 1000 + SESSION_SECONDS;
        assert!(cookies.read(value(&header), at(expiry), token).is_none());
        assert!(cookies.read(value(&renewed), at(expiry), token).is_some());
        // However often it is renewed, it ends.
        assert!(cookies.read(value(&renewed), at(1000 + LONGEST_SECONDS), token).is_none());
    }

    #[test]
    fn a_changed_cookie_is_nobodys() {
        let (_directory, cookies) = cookies();
        let header = begin(&cookies);
        let whole = value(&header);
        for at_byte in 0..whole.len() {
            let mut changed = whole.as_bytes().to_vec();
            changed[at_byte] = if changed[at_byte] == b'0' { b'1' } else { b'0' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(cookies.read(&changed, at(1001), token).is_none(), "{changed}");
        }
        for bad in ["", ".", "....", "é", "0.0.0.0.00"] {
            assert!(cookies.read(bad, at(1001), token).is_none(), "{bad}");
        }
    }

    #[test]
    fn another_token_of_the_user_ends_their_sessions() {
        let (_directory, cookies) = cookies();
        let header = begin(&cookies);
        assert!(cookies.read(value(&header), at(1001), token).is_some());
        let changed = |_: &str| Some("another".to_owned());
        assert!(cookies.read(value(&header), at(1001), changed).is_none());
        assert!(cookies.read(value(&header), at(1001), |_| None).is_none());
    }

    #[test]
    fn who_signs_out_is_out_after_a_restart_too() {
        let (directory, cookies) = cookies();
        let header = begin(&cookies);
        let session = cookies.read(value(&header), at(1001), token).unwrap();
        cookies.end(session, at(1001)).unwrap();
        for cookies in [cookies, open(&directory)] {
            assert!(cookies.read(value(&header), at(1002), token).is_none());
        }
    }
}
