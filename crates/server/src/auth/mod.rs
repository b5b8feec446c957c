//! Who sends a request, and what they may do.
//!
//! Programs send a token: the one in the data directory's file, or one of a user in the configuration. Browsers get a
//! cookie for a link that works once. Both lead to a [`User`].
//!
//! Invariants:
//! - A token, a link's code and a cookie are compared by their hashes or signatures, in constant time.
//! - None of them is in a log line, in a URL that is sent, or in the database.

mod cookie;
mod links;
mod throttle;
mod token;

use std::net::IpAddr;

use axum::http::{HeaderMap, header};
use jiff::Timestamp;
use ring::hmac;
use tokio::sync::watch;
use windlass_coordinator::Storage;
use windlass_coordinator::slash::Reach;
use windlass_core::string_enum;

use cookie::Cookies;
pub use cookie::{SESSION_SECONDS, SignIn};
pub use links::{LINK_SECONDS, Links};
use throttle::Throttle;
pub use token::TokenHash;

string_enum! {
    /// What a user may do, from least to most.
    Access ("access level") {
        /// See everything, change nothing.
        Viewer = "viewer",
        /// See and change what is theirs.
        Operator = "operator",
        /// See and change everything.
        Admin = "admin",
    }
}

/// Somebody who may sign in with a token of their own.
#[derive(Clone, Debug)]
pub struct Account {
    pub name: String,
    pub token: TokenHash,
    pub access: Access,
}

/// How somebody signed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    Token,
    Cookie,
}

/// Who sends a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub access: Access,
    pub via: Via,
}

impl User {
    /// Whether what belongs to `owner` is shown to them. What belongs to nobody is an admin's and a viewer's.
    pub fn may_see(&self, owner: Option<&str>) -> bool {
        match self.access {
            Access::Viewer | Access::Admin => true,
            Access::Operator => owner == Some(self.name.as_str()),
        }
    }

    /// Whose things their commands show and change.
    pub fn reach(&self) -> Reach {
        match self.access {
            Access::Operator => Reach::Own,
            Access::Viewer | Access::Admin => Reach::Everything,
        }
    }

    /// Whose tasks lists and sums are limited to; `None` for everybody's.
    pub fn limited_to(&self) -> Option<String> {
        (!self.may_see(None)).then(|| self.name.clone())
    }
}

/// Who sends a request, and by which cookie.
pub struct Identity {
    pub user: User,
    /// The browser's session; `None` for a token.
    pub session: Option<SignIn>,
    /// A younger cookie for the browser.
    pub set_cookie: Option<String>,
}

/// Why a request has no user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignInFailure {
    /// It brings nothing to sign in with.
    Nobody,
    /// It brings a token that is nobody's.
    WrongToken,
    /// It brings a cookie that has expired, or is not ours.
    OldCookie,
    /// Too many wrong ones came from there.
    TooMany { retry_after: u64 },
}

/// What is known when a server starts.
pub struct Setup {
    /// Who the token of the file stands for.
    pub owner: String,
    pub accounts: Vec<Account>,
    /// A part of the cookie's name, because browsers do not tell ports apart.
    pub port: u16,
    pub is_tls: bool,
}

/// Everything that is needed to tell who somebody is.
pub struct Auth {
    /// Who the token in the data directory's file stands for.
    owner: Account,
    accounts: Vec<Account>,
    cookies: Cookies,
    pub links: Links,
    throttle: Throttle,
}

impl Auth {
    /// Reads the token's file; makes it first if it is missing.
    pub fn open(place: &Storage<'_>, setup: Setup) -> std::io::Result<Self> {
        let Setup { owner, accounts, port, is_tls } = setup;
        let secret = token::read_or_make(&place.token_file())?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, format!("cookie {secret}").as_bytes());
        let owner = Account { name: owner, token: TokenHash::of(&secret), access: Access::Admin };
        Ok(Self {
            cookies: Cookies::open(key, port, is_tls, place.signed_out_file())?,
            owner,
            accounts,
            links: Links::new(place.login_directory()),
            throttle: Throttle::default(),
        })
    }

    /// Who the token of the file stands for.
    pub fn owner(&self) -> &str {
        &self.owner.name
    }

    /// Who sends a request with these headers from this address.
    pub fn identify(
        &self,
        headers: &HeaderMap,
        from: IpAddr,
        now: Timestamp,
    ) -> Result<Identity, SignInFailure> {
        if let Some(token) = bearer(headers) {
            let user = user(self.check_token(&token, from, now)?, Via::Token);
            return Ok(Identity { user, session: None, set_cookie: None });
        }
        let Some(cookie) = self.cookies.find(headers) else { return Err(SignInFailure::Nobody) };
        let session = self.session(cookie, now).ok_or(SignInFailure::OldCookie)?;
        let account = self.account_named(&session.user).ok_or(SignInFailure::OldCookie)?;
        let set_cookie = self.cookies.renew(&session, now);
        Ok(Identity { user: user(account, Via::Cookie), session: Some(session), set_cookie })
    }

    /// Trades a link's code, or a token that a person pasted, for who it stands for.
    pub fn sign_in(
        &self,
        secret: &str,
        from: IpAddr,
        now: Timestamp,
    ) -> Result<User, SignInFailure> {
        // A code is used up by being looked at, so an address that guesses does not come that far.
        let is_blocked = self.throttle.blocked(from, now).is_some();
        let code = (!is_blocked).then(|| self.links.take(secret, now)).flatten();
        let account = match code.and_then(|name| self.account_named(&name)) {
            Some(account) => account,
            None => self.check_token(secret, from, now)?,
        };
        Ok(user(account, Via::Cookie))
    }

    /// Whose token it is. A right one always passes: nobody guesses 256 random bits, and one program with a wrong token
    /// must not lock out everybody behind the same address.
    fn check_token(
        &self,
        token: &str,
        from: IpAddr,
        now: Timestamp,
    ) -> Result<&Account, SignInFailure> {
        if let Some(account) = self.account_of(token) {
            return Ok(account);
        }
        if let Some(retry_after) = self.throttle.blocked(from, now) {
            return Err(SignInFailure::TooMany { retry_after });
        }
        self.throttle.failed(from, now);
        Err(SignInFailure::WrongToken)
    }

    /// Whether a browser's session still holds: it has neither expired nor been signed out.
    pub fn is_valid(&self, session: &SignIn, now: Timestamp) -> bool {
        self.cookies.is_valid(session, now)
    }

    /// Changes whenever a browser signs out.
    pub fn sign_outs(&self) -> watch::Receiver<u64> {
        self.cookies.sign_outs()
    }

    /// The `Set-Cookie` of a user who has signed in.
    pub fn begin_session(&self, user: &User, now: Timestamp) -> std::io::Result<String> {
        let gone = || std::io::Error::other("the user is gone");
        let account = self.account_named(&user.name).ok_or_else(gone)?;
        self.cookies.begin(&account.name, account.token.to_string(), now)
    }

    /// Ends the session of a request, and returns the `Set-Cookie` that removes its cookie.
    pub fn end_session(&self, headers: &HeaderMap, now: Timestamp) -> std::io::Result<String> {
        if let Some(session) = self.cookies.find(headers).and_then(|value| self.session(value, now))
        {
            self.cookies.end(session, now)?;
        }
        Ok(self.cookies.removal())
    }

    fn session(&self, cookie: &str, now: Timestamp) -> Option<cookie::SignIn> {
        let token_of = |name: &str| Some(self.account_named(name)?.token.to_string());
        self.cookies.read(cookie, now, token_of)
    }

    fn account_of(&self, token: &str) -> Option<&Account> {
        let given = TokenHash::of(token);
        // Every one is compared, so that the time says nothing about which was near.
        let all = std::iter::once(&self.owner).chain(&self.accounts);
        all.fold(None, |found, account| match account.token.is_same(&given) {
            true => Some(account),
            false => found,
        })
    }

    /// The account of this name; `None` for a user who was removed from the configuration.
    pub fn account_named(&self, name: &str) -> Option<&Account> {
        std::iter::once(&self.owner).chain(&self.accounts).find(|account| account.name == name)
    }
}

fn user(account: &Account, via: Via) -> User {
    User { name: account.name.clone(), access: account.access, via }
}

/// The token in an `Authorization` header; `None` where there is no such header. Programs that know only names and
/// passwords send it as the password.
fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().unwrap_or("");
    let (scheme, rest) = value.split_once(' ').unwrap_or((value, ""));
    let token = match scheme.to_ascii_lowercase().as_str() {
        "bearer" => Some(rest.trim().to_owned()),
        "basic" => base64(rest.trim()).and_then(|pair| Some(pair.split_once(':')?.1.to_owned())),
        _ => None,
    };
    Some(token.unwrap_or_default())
}

/// Text that is written in base64.
fn base64(text: &str) -> Option<String> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut held, mut bits) = (0_u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let digit = DIGITS.iter().position(|&digit| digit == letter)?;
        held = (held << 6 | digit as u32) & 0xFFFF;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_as_such_or_as_a_password() {
        let sent = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            bearer(&headers)
        };
        for value in ["Bearer abc:d", "bearer  abc:d ", "Basic dXNlcjphYmM6ZA=="] {
            assert_eq!(sent(value).as_deref(), Some("abc:d"), "{value}");
        }
        for value in ["", "Bearer", "Basic", "Basic ?", "Basic dXNlcg==", "Digest abc"] {
            assert_eq!(sent(value).as_deref(), Some(""), "{value}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
