//! Network addresses in any notation, and what asking them means.
//!
//! `2852039166`, `0xa9.254.0251.254`, `[::ffff:169.254.169.254]`, `169.254.169.254.nip.io` and `１６９。２５４…` are
//! all the machine's metadata service.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::classify::opaque;
use windlass_core::policy::class::{Assessment, Class, Risk};

/// Names of metadata services.
const METADATA_NAMES: &[&str] = &[
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "metadata.azure.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "instance-data",
    "instance-data.ec2.internal",
    "rancher-metadata",
];

/// Domains whose names are addresses.
const ADDRESS_DOMAINS: &[&str] = &[
    ".nip.io",
    ".sslip.io",
    ".xip.io",
    ".traefik.me",
    ".backname.io",
    ".1u.ms",
    ".rbndr.us",
    ".localtest.me",
    ".lvh.me",
    ".vcap.me",
];

/// Endings of names that only a private network knows.
const PRIVATE_DOMAINS: &[&str] = &[
    ".svc",
    ".svc.cluster.local",
    ".internal",
    ".intranet",
    ".corp",
    ".lan",
    ".local",
    ".home.arpa",
    ".consul",
];

/// What kind of place an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressKind {
    Public,
    Loopback,
    Private,
    Metadata,
}

/// What asking this word's address means beyond asking the network; `None` for nothing.
pub(super) fn judge(word: &str) -> Option<Assessment> {
    let host = host_of(word);
    let shown = super::findings::display_text(&host);
    let metadata = || {
        opaque(format!("asks `{shown}`, the machine's metadata service, which holds credentials"))
    };
    let private = |what: &str| {
        Assessment::of(Class::Read, format!("asks `{shown}`, {what}")).at_least(Risk::High)
    };
    if METADATA_NAMES.contains(&&*host) {
        return Some(metadata());
    }
    if PRIVATE_DOMAINS.iter().any(|domain| host.ends_with(domain)) {
        return Some(private("a name of a private network"));
    }
    let in_domain = |domain: &&&str| host.ends_with(**domain) || host == domain[1..];
    if let Some(domain) = ADDRESS_DOMAINS.iter().find(in_domain) {
        let embedded = embedded_address(host.trim_end_matches(*domain));
        return Some(match embedded.map(kind) {
            Some(AddressKind::Metadata) => metadata(),
            Some(AddressKind::Private | AddressKind::Loopback | AddressKind::Public) | None => {
                private("a name that stands for an address")
            }
        });
    }
    let in_url = word.contains("://");
    let (address, plain) =
        parse(&host).or_else(|| Some((small_number(&host)?, false)).filter(|_| in_url))?;
    // What is written with other characters than it has is in disguise.
    let plain = plain && word.to_ascii_lowercase().contains(&*host);
    match (kind(address), plain) {
        (AddressKind::Metadata, _) => Some(metadata()),
        (AddressKind::Private, _) => Some(private("a private address")),
        (AddressKind::Loopback | AddressKind::Public, false) => {
            Some(private("an address in disguise"))
        }
        (AddressKind::Loopback | AddressKind::Public, true) => None,
    }
}

/// `http://0/`: alone a small number is a port or a count, in a URL it is an address.
fn small_number(host: &str) -> Option<IpAddr> {
    let digits = !host.is_empty() && host.bytes().all(|b| b.is_ascii_digit());
    let number = host.parse::<u32>().ok().filter(|_| digits)?;
    Some(Ipv4Addr::from(number).into())
}

/// The host in a URL, in `user@host`, in `host:port`, or the word itself; lower case, without a final dot.
fn host_of(word: &str) -> String {
    let rest = word.split_once("://").map_or(word, |(_, rest)| rest);
    let rest = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let host = match rest.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => match rest.rsplit_once(':') {
            // Two colons are an address of version 6.
            Some((host, _)) if !host.contains(':') => host,
            _ => rest,
        },
    };
    let host: String = decode(host).chars().map(to_ascii).collect();
    host.to_ascii_lowercase().trim_end_matches('.').to_owned()
}

/// `%2e` and its like.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Characters that a resolver takes for others: wide and circled digits, other full stops.
fn to_ascii(c: char) -> char {
    let digit = |from: u32, zero: u8| {
        let offset = (c as u32).checked_sub(from).and_then(|n| u8::try_from(n).ok());
        offset.map_or(c, |offset| char::from(zero + offset))
    };
    match c {
        '\u{ff10}'..='\u{ff19}' => digit(0xff10, b'0'),
        '\u{2460}'..='\u{2468}' => digit(0x2460, b'1'),
        '\u{24ea}' => '0',
        '\u{3002}' | '\u{ff0e}' | '\u{ff61}' => '.',
        c => c,
    }
}

/// An address, and whether it is written as addresses usually are.
fn parse(host: &str) -> Option<(IpAddr, bool)> {
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Some((address.into(), true));
    }
    if let Ok(address) = host.split('%').next().unwrap_or_default().parse::<Ipv6Addr>() {
        return Some(match embedded_in_v6(address) {
            Some(inner) => (inner.into(), false),
            None => (address.into(), true),
        });
    }
    Some((old_notation(host)?.into(), false))
}

/// The address of version 4 that one of version 6 leads to: mapped, compatible, translated, 6to4.
fn embedded_in_v6(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let parts = address.segments();
    let from = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match parts {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] if high != 0 => Some(from(high, low)),
        [0, 0, 0, 0, 0xffff, 0, high, low] => Some(from(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(from(high, low)),
        [0x2002, high, low, ..] => Some(from(high, low)),
        _ => None,
    }
}

/// One to four numbers, each decimal, octal or hexadecimal, as `inet_aton` takes them.
fn old_notation(host: &str) -> Option<Ipv4Addr> {
    let parts: Vec<&str> = host.split('.').collect();
    let number = |text: &str| match text.strip_prefix("0x") {
        Some("") => Some(0),
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => u64::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    };
    let numbers: Vec<u64> = parts.iter().map(|part| number(part)).collect::<Option<_>>()?;
    let (last, others) = numbers.split_last()?;
    // A small number alone is a port or a count.
    if others.is_empty() && *last < 1 << 24 && !host.starts_with("0x") {
        return None;
    }
    if others.len() > 3 || others.iter().any(|part| *part > 255) {
        return None;
    }
    let bits = 8 * (4 - others.len());
    if *last >= 1 << bits {
        return None;
    }
    let high = others.iter().enumerate().map(|(at, part)| part << (24 - 8 * at)).sum::<u64>();
    u32::try_from(high + last).ok().map(Ipv4Addr::from)
}

/// The address in a name such as `app.10-0-0-1` or `a9fea9fe`.
fn embedded_address(name: &str) -> Option<IpAddr> {
    let last: Vec<&str> = name.split(['.', '-']).collect();
    let dotted = last.get(last.len().saturating_sub(4)..).unwrap_or_default().join(".");
    let hex = last.last().filter(|part| part.len() == 8);
    let hex = hex.and_then(|part| u32::from_str_radix(part, 16).ok()).map(Ipv4Addr::from);
    dotted.parse::<Ipv4Addr>().ok().or(hex).map(IpAddr::from)
}

fn kind(address: IpAddr) -> AddressKind {
    match address {
        IpAddr::V4(v4) => match v4.octets() {
            [169, 254, ..] | [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192] => {
                AddressKind::Metadata
            }
            [127, ..] | [0, ..] => AddressKind::Loopback,
            [100, 64..=127, ..] | [198, 18..=19, ..] => AddressKind::Private,
            _ if v4.is_private() => AddressKind::Private,
            _ => AddressKind::Public,
        },
        IpAddr::V6(v6) => match v6.segments() {
            [0xfd00, 0xec2, ..] | [0xfe80..=0xfebf, ..] => AddressKind::Metadata,
            [0xfc00..=0xfdff, ..] => AddressKind::Private,
            _ if v6.is_loopback() || v6.is_unspecified() => AddressKind::Loopback,
            _ => AddressKind::Public,
        },
    }
}
