//! What may be reached: rules over addresses and host names, as pure functions.
//!
//! Invariants:
//! - An address is judged after resolution and connected to as judged, so a name that resolves again
//!   (rebinding) or a redirect gains nothing.
//! - An IPv4 address inside an IPv6 one (mapped, compatible, NAT64, 6to4, Teredo) is judged as what it is.
//! - What is not public is refused unless a configured range allows it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use windlass_helper::protocol::NetworkMode;

/// What a sandbox's commands may reach.
#[derive(Clone, Debug)]
pub enum Network {
    /// Loopback of their own, and the world through windlass's proxy.
    Restricted(Egress),
    /// No network at all.
    None,
    /// Whatever the host reaches, unjudged.
    Open,
}

impl Network {
    /// What the helper has to arrange for it.
    pub(crate) fn mode(&self) -> NetworkMode {
        match self {
            Self::Restricted(_) => NetworkMode::Proxy,
            Self::None => NetworkMode::Nothing,
            Self::Open => NetworkMode::Everything,
        }
    }

    /// What the proxy lets through, where there is one.
    pub(crate) fn egress(&self) -> Option<Egress> {
        match self {
            Self::Restricted(egress) => Some(egress.clone()),
            Self::None | Self::Open => None,
        }
    }
}

/// What the proxy lets through, and who observes it.
#[derive(Clone)]
pub struct Egress {
    /// Which addresses may be connected to.
    pub addresses: AddressRules,
    /// Which hosts may be asked for.
    pub hosts: HostRules,
    /// Servers as `host:port` that may be reached whatever the rules say: a person has named each.
    pub endpoints: Vec<String>,
    /// Called for every connection that was asked for.
    pub observer: Arc<dyn Fn(&ConnectionAttempt) + Send + Sync>,
}

impl Egress {
    /// Public addresses of any host, without an observer.
    pub fn public() -> Self {
        Self {
            addresses: AddressRules { allowed: Vec::new() },
            hosts: HostRules::Any,
            endpoints: Vec::new(),
            observer: Arc::new(|_| {}),
        }
    }

    /// Whether a person has named this very server.
    pub(crate) fn names(&self, host: &str, port: u16) -> bool {
        let has_port = |endpoint: &&String| endpoint.contains(':');
        let endpoints = self.endpoints.iter().filter(has_port).cloned().collect();
        HostRules::Only(endpoints).allow(host, port)
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Egress")
            .field("addresses", &self.addresses)
            .field("hosts", &self.hosts)
            .field("endpoints", &self.endpoints)
            .finish_non_exhaustive()
    }
}

/// One connection a command asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionAttempt {
    /// The host as it was named.
    pub host: String,
    /// The port that was asked for.
    pub port: u16,
    /// What became of it.
    pub verdict: Verdict,
}

impl ConnectionAttempt {
    /// What went wrong with it, in a sentence that names windlass and, for a refusal, the setting that lifts it.
    pub(crate) fn problem(&self) -> String {
        match (self.refusal(), &self.verdict) {
            (Some(text), _) => text,
            (None, Verdict::Failed(why)) => format!("windlass: {why}"),
            (None, _) => String::new(),
        }
    }

    /// Why windlass refused it; `None` when it did not.
    pub fn refusal(&self) -> Option<String> {
        let Self { host, port, verdict } = self;
        let why = match verdict {
            Verdict::Connected(_) | Verdict::Failed(_) => return None,
            Verdict::HostRefused => {
                "it is not on the list of allowed hosts; allow it with `sandbox.allow_hosts`"
                    .to_owned()
            }
            Verdict::AddressRefused(address, why) => {
                format!("{address} is {why}; allow it with `sandbox.allow_addresses`")
            }
            Verdict::OtherName(name) => format!(
                "its TLS hello asks for `{name}`; connect to that host by its own name, and where hosts are \
                 listed allow it with `sandbox.allow_hosts`"
            ),
            Verdict::NoName => {
                "hosts are listed in `sandbox.allow_hosts`, and it names none in a TLS hello, so \
                                it could be for any host"
                    .to_owned()
            }
        };
        Some(format!("windlass refused a connection to {host}:{port}: {why}"))
    }
}

/// What became of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Connected to this address.
    Connected(SocketAddr),
    /// The host is not on the list.
    HostRefused,
    /// Every address it resolves to is refused; the first, with its reason.
    AddressRefused(IpAddr, Refusal),
    /// The TLS hello in it names this other host.
    OtherName(String),
    /// Hosts are listed, and nothing in it names one.
    NoName,
    /// It could not be resolved or reached.
    Failed(String),
}

/// Why an address is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// The machine itself.
    Loopback,
    /// A private network, IPv4 or IPv6 (unique local, site local).
    Private,
    /// The local link.
    LinkLocal,
    /// A cloud's metadata service.
    Metadata,
    /// Shared between a provider and its customers (carrier-grade NAT).
    Shared,
    /// Many machines at once.
    Multicast,
    /// It is not an address.
    Unspecified,
    /// Set aside: documentation, benchmarks, protocols, the future.
    Reserved,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "loopback",
            Self::Private => "a private network",
            Self::LinkLocal => "link-local",
            Self::Metadata => "a cloud metadata service",
            Self::Shared => "shared address space",
            Self::Multicast => "multicast or broadcast",
            Self::Unspecified => "unspecified",
            Self::Reserved => "reserved",
        })
    }
}

/// Which addresses may be reached beside the public ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressRules {
    /// Ranges allowed although they are not public.
    pub allowed: Vec<Range>,
}

impl AddressRules {
    /// Judges one resolved address.
    pub fn check(&self, address: IpAddr) -> Result<(), Refusal> {
        let plain = address.to_canonical();
        if self.allowed.iter().any(|range| range.contains(address) || range.contains(plain)) {
            return Ok(());
        }
        match plain {
            IpAddr::V4(address) => refusal_v4(address),
            IpAddr::V6(address) => refusal_v6(address),
        }
        .map_or(Ok(()), Err)
    }
}

/// A range of addresses, written `10.0.0.0/8`, `fd00::/8` or as a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    base: IpAddr,
    length: u8,
}

/// Text that is not a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a range of addresses such as `10.0.0.0/8` or `::1`")]
pub struct BadRange(String);

impl FromStr for Range {
    type Err = BadRange;

    fn from_str(text: &str) -> Result<Self, BadRange> {
        let bad = || BadRange(text.to_owned());
        let (base, length) = match text.split_once('/') {
            Some((base, length)) => (base, Some(length.parse::<u8>().map_err(|_| bad())?)),
            None => (text, None),
        };
        let base: IpAddr = base.parse().map_err(|_| bad())?;
        let most = if base.is_ipv4() { 32 } else { 128 };
        let length = length.unwrap_or(most);
        if length > most { Err(bad()) } else { Ok(Self { base, length }) }
    }
}

impl Range {
    /// Whether the address lies in the range; the families do not mix.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.length);
                u32::from(base).checked_shr(shift) == u32::from(address).checked_shr(shift)
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.length);
                u128::from(base).checked_shr(shift) == u128::from(address).checked_shr(shift)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

fn refusal_v4(address: Ipv4Addr) -> Option<Refusal> {
    // The Azure agent answers on an address that looks public; Alibaba's lies in the shared space.
    match address.octets() {
        [169, 254, 169, 254] | [169, 254, 170, 2] | [168, 63, 129, 16] | [100, 100, 100, 200] => {
            Some(Refusal::Metadata)
        }
        [0, 0, 0, 0] => Some(Refusal::Unspecified),
        [127, ..] => Some(Refusal::Loopback),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some(Refusal::Private),
        [169, 254, ..] => Some(Refusal::LinkLocal),
        [100, 64..=127, ..] => Some(Refusal::Shared),
        [224..=239, ..] | [255, 255, 255, 255] => Some(Refusal::Multicast),
        [0, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [240..=255, ..] => Some(Refusal::Reserved),
        _ => None,
    }
}

fn refusal_v6(address: Ipv6Addr) -> Option<Refusal> {
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        refusal_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some(Refusal::Unspecified),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(Refusal::Loopback),
        // Compatible, translated and mapped forms of IPv4. The rest of ::/8 is not assigned.
        [0, 0, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low] => v4(high, low).or(Some(Refusal::Reserved)),
        // NAT64: the well-known prefix holds an IPv4 address, the local one a network's own secrets.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x64, 0xff9b, ..] => Some(Refusal::Private),
        // 6to4 and Teredo (whose client address is inverted) reach the IPv4 address they hold.
        [0x2002, high, low, ..] => v4(high, low),
        [0x2001, 0, server_high, server_low, _, _, high, low] => {
            v4(!high, !low).or_else(|| v4(server_high, server_low))
        }
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] => Some(Refusal::Metadata),
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Some(Refusal::Private),
        [0xfe80..=0xfebf, ..] => Some(Refusal::LinkLocal),
        [0xff00..=0xffff, ..] => Some(Refusal::Multicast),
        // Of what is left only 2000::/3 is in use, and in it a few blocks are set aside.
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => Some(Refusal::Reserved),
        [0x2001, 0x0001..=0x01ff, ..] => Some(Refusal::Reserved),
        [0x2000..=0x3fff, ..] => None,
        _ => Some(Refusal::Reserved),
    }
}

/// Which hosts may be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostRules {
    /// Every host is allowed.
    Any,
    /// Only these: `example.org` is that host, `*.example.org` every host below it, `example.org:443` that
    /// port only.
    Only(Vec<String>),
}

impl HostRules {
    /// Whether a host may be asked for on this port.
    pub fn allow(&self, host: &str, port: u16) -> bool {
        let Self::Only(patterns) = self else { return true };
        let host = plain_host(host);
        patterns.iter().any(|pattern| {
            let (name, wanted) = match pattern.rsplit_once(':') {
                // A bare IPv6 address has colons of its own.
                Some((name, number)) if !name.contains(':') || name.ends_with(']') => {
                    (name, number.parse::<u16>().ok())
                }
                _ => (pattern.as_str(), Some(port)),
            };
            let name = plain_host(name);
            wanted == Some(port)
                && match name.strip_prefix("*.") {
                    Some(parent) => host
                        .strip_suffix(parent)
                        .is_some_and(|below| below.len() > 1 && below.ends_with('.')),
                    None => host == name,
                }
        })
    }
}

/// Whether two names mean the same host.
pub(crate) fn is_same_host(one: &str, other: &str) -> bool {
    plain_host(one) == plain_host(other)
}

/// A host as names compare: lower case, without the root's dot or an address's brackets.
fn plain_host(host: &str) -> String {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
