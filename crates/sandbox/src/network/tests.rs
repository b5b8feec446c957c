use proptest::prelude::*;

use super::*;

fn judge(address: &str) -> Option<Refusal> {
    AddressRules { allowed: Vec::new() }.check(address.parse().unwrap()).err()
}

#[test]
fn every_kind_of_address_that_is_not_public_is_refused() {
    for (refusal, addresses) in [
        (Refusal::Loopback, vec!["127.0.0.1", "127.255.255.254", "::1"]),
        (Refusal::Private, vec!["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"]),
        (Refusal::Private, vec!["fc00::1", "fd12:3456::1", "fec0::1", "64:ff9b:1::1"]),
        (Refusal::LinkLocal, vec!["169.254.0.1", "fe80::1", "febf::1"]),
        (Refusal::Metadata, vec!["169.254.169.254", "168.63.129.16", "100.100.100.200"]),
        (Refusal::Metadata, vec!["fd00:ec2::254", "169.254.170.2"]),
        (Refusal::Shared, vec!["100.64.0.1", "100.127.255.255"]),
        (Refusal::Multicast, vec!["224.0.0.1", "239.255.255.255", "255.255.255.255", "ff02::1"]),
        (Refusal::Unspecified, vec!["0.0.0.0", "::"]),
        (Refusal::Reserved, vec!["0.1.2.3", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.19.0.1"]),
        (Refusal::Reserved, vec!["198.51.100.1", "203.0.113.1", "240.0.0.1", "192.88.99.1"]),
        (
            Refusal::Reserved,
            vec!["2001:db8::1", "100::1", "3fff::1", "4000::1", "1::1", "2001:10::1"],
        ),
    ] {
        for address in addresses {
            assert_eq!(judge(address), Some(refusal), "{address}");
        }
    }
}

#[test]
fn the_neighbours_of_refused_ranges_are_public() {
    for address in [
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "1.1.1.1",
        "8.8.8.8",
        "2606:4700:4700::1111",
        "2a00:1450::1",
        "2001:4860:4860::8888",
    ] {
        assert_eq!(judge(address), None, "{address}");
    }
}

#[test]
fn an_ipv4_address_inside_an_ipv6_one_is_judged_as_ipv4() {
    for (address, refusal) in [
        ("::ffff:127.0.0.1", Some(Refusal::Loopback)),
        ("::ffff:169.254.169.254", Some(Refusal::Metadata)),
        ("::ffff:8.8.8.8", None),
        ("::127.0.0.1", Some(Refusal::Loopback)),
        ("::8.8.8.8", Some(Refusal::Reserved)),
        ("::ffff:0:10.0.0.1", Some(Refusal::Private)),
        ("64:ff9b::10.0.0.1", Some(Refusal::Private)),
        ("64:ff9b::8.8.8.8", None),
        ("2002:7f00:1::", Some(Refusal::Loopback)),
        ("2002:808:808::1", None),
        // Teredo with the client 192.168.0.1, inverted.
        ("2001:0:4136:e378:8000:63bf:3f57:fffe", Some(Refusal::Private)),
    ] {
        assert_eq!(judge(address), refusal, "{address}");
    }
}

#[test]
fn a_configured_range_allows_what_it_names_and_nothing_else() {
    let allowed = ["10.1.0.0/16", "::1", "127.0.0.1"].map(|range| range.parse().unwrap()).to_vec();
    let rules = AddressRules { allowed };
    for (address, allowed) in [
        ("10.1.2.3", true),
        ("::ffff:10.1.2.3", true),
        ("10.2.0.1", false),
        ("::1", true),
        ("127.0.0.1", true),
        ("127.0.0.2", false),
    ] {
        assert_eq!(rules.check(address.parse().unwrap()).is_ok(), allowed, "{address}");
    }
}

#[test]
fn a_range_that_is_none_is_refused_by_name() {
    for text in ["", "10.0.0.0/33", "::/129", "ten", "10.0.0.0/", "10.0.0.0/-1", "10.0.0/8"] {
        assert_eq!(text.parse::<Range>(), Err(BadRange(text.to_owned())));
    }
    let all: Range = "0.0.0.0/0".parse().unwrap();
    assert!(all.contains("203.0.113.9".parse().unwrap()));
}

#[test]
fn host_patterns_match_hosts_below_and_ports_as_written() {
    let rules = HostRules::Only(
        ["example.org", "*.crates.io", "registry.npmjs.org:443", "[2606:4700::1]:80"]
            .map(str::to_owned)
            .to_vec(),
    );
    for (host, port, allowed) in [
        ("example.org", 80, true),
        ("EXAMPLE.ORG.", 443, true),
        ("www.example.org", 443, false),
        ("static.crates.io", 443, true),
        ("a.b.crates.io", 443, true),
        ("crates.io", 443, false),
        ("evilcrates.io", 443, false),
        ("registry.npmjs.org", 443, true),
        ("registry.npmjs.org", 80, false),
        ("[2606:4700::1]", 80, true),
        ("2606:4700::1", 81, false),
    ] {
        assert_eq!(rules.allow(host, port), allowed, "{host}:{port}");
    }
    assert!(HostRules::Any.allow("anything", 1));
}

proptest! {
    #[test]
    fn mapping_an_address_never_changes_the_judgement(bits in any::<u32>()) {
        let rules = AddressRules { allowed: Vec::new() };
        let plain = Ipv4Addr::from(bits);
        let mapped = IpAddr::V6(plain.to_ipv6_mapped());
        prop_assert_eq!(rules.check(IpAddr::V4(plain)), rules.check(mapped));
    }

    #[test]
    fn an_allowed_range_always_contains_its_base(bits in any::<u128>(), length in 0u8..=128) {
        let base = Ipv6Addr::from(bits);
        let range: Range = format!("{base}/{length}").parse().unwrap();
        prop_assert!(range.contains(IpAddr::V6(base)));
    }

    #[test]
    fn reading_a_range_never_panics(text in ".{0,40}") {
        let _ = text.parse::<Range>();
    }
}
