//! Where a request comes from: the other end of its connection, or whom a proxy there names in `X-Forwarded-For`.
//!
//! Invariant: the header counts only as far as trusted proxies have written it. What is before the first address that
//! is none of them may be anybody's invention.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use axum::http::{HeaderMap, HeaderName};

/// The header in which proxies name who sent them a request, the nearest last.
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Addresses whose `X-Forwarded-For` is believed: `10.0.0.5`, `10.1.0.0/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyNetwork {
    address: IpAddr,
    /// How many leading bits its addresses share.
    bits: u32,
}

impl FromStr for ProxyNetwork {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("`{text}` is neither an address nor a network");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().map_err(|_| refused())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| refused())?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(all);
        if bits > all { Err(refused()) } else { Ok(Self { address, bits }) }
    }
}

impl ProxyNetwork {
    fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differing = u32::from(own) ^ u32::from(other);
                differing.checked_shr(32 - self.bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differing = u128::from(own) ^ u128::from(other);
                differing.checked_shr(128 - self.bits).unwrap_or(0) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// Who sent a request that came from `peer`.
pub fn of(proxies: &[ProxyNetwork], peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let lines: Vec<_> = headers.get_all(FORWARDED_FOR).iter().collect();
    let hops = lines.iter().rev().flat_map(|line| line.to_str().unwrap_or("").rsplit(','));
    let mut nearest = peer.to_canonical();
    for hop in hops {
        let is_trusted = proxies.iter().any(|proxy| proxy.contains(nearest));
        let Some(named) = address_in(hop.trim()).filter(|_| is_trusted) else { break };
        nearest = named;
    }
    nearest
}

/// An address as proxies write it: alone, or with a port.
fn address_in(text: &str) -> Option<IpAddr> {
    let plain = text.trim_start_matches('[').trim_end_matches(']');
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    plain.parse::<IpAddr>().ok().or_else(with_port).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_name_the_client() {
        let client = |proxies: &[&str], peer: &str, lines: &[&'static str]| {
            let proxies: Vec<_> = proxies.iter().map(|text| text.parse().unwrap()).collect();
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(FORWARDED_FOR, line.parse().unwrap());
            }
            of(&proxies, peer.parse().unwrap(), &headers).to_string()
        };
        let inner = ["10.0.0.0/8"];
        assert_eq!(client(&[], "10.0.0.1", &["1.2.3.4"]), "10.0.0.1");
        assert_eq!(client(&inner, "192.168.0.1", &["1.2.3.4"]), "192.168.0.1");
        assert_eq!(client(&inner, "10.0.0.1", &["1.2.3.4"]), "1.2.3.4");
        assert_eq!(client(&inner, "::ffff:10.0.0.1", &["1.2.3.4:567"]), "1.2.3.4");
        assert_eq!(client(&inner, "10.0.0.1", &["6.6.6.6, 1.2.3.4, 10.0.0.2"]), "1.2.3.4");
        assert_eq!(client(&inner, "10.0.0.1", &["6.6.6.6", "1.2.3.4"]), "1.2.3.4");
        assert_eq!(client(&["::1"], "::1", &["[2001:db8::1]:80"]), "2001:db8::1");
        assert_eq!(client(&inner, "10.0.0.1", &["garbage"]), "10.0.0.1");
        assert_eq!(client(&["0.0.0.0/0"], "10.0.0.1", &["1.2.3.4"]), "1.2.3.4");
        for bad in ["", "x", "10.0.0.0/33", "10.0.0.0/", "::/129"] {
            assert!(bad.parse::<ProxyNetwork>().is_err(), "{bad}");
        }
    }
}
