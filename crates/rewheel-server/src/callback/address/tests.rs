//! Tests which addresses a callback may reach.

use super::{Allow, of_host};
use crate::callback::template::UrlTemplate;
use url::Url;

#[track_caller]
fn check(host: &str, expected: Option<&str>) {
    let url = format!("http://{host}/hook").parse::<Url>();
    let url = url.unwrap_or_else(|error| panic!("{host} is not a host: {error}"));
    let address = of_host(&url).unwrap_or_else(|| panic!("{host} is not an address"));
    let refused = Allow::default().check(address).err().map(|refused| refused.what);
    assert_eq!(refused, expected, "{host} is {address}");
    assert_eq!(UrlTemplate::parse(url.as_str(), &|_| None).unwrap().address(), Some(address));
}

#[test]
fn this_machine_is_refused_in_every_spelling() {
    for host in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "127.255.255.254",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0X7F.0x0.0x0.0x1",
        "017700000001",
        "0177.0.0.1",
        "0177.0x0.1",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "１２７.０.０.１",
        "127。0。0。1",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[0000::0001]",
    ] {
        check(host, Some("loopback"));
    }
    for host in ["0.0.0.0", "0", "0x0", "00", "0.1.2.3", "[::]", "[0::0]"] {
        check(host, Some("this host"));
    }
}

#[test]
fn the_neighbourhood_is_refused() {
    for host in ["10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.1.1"] {
        check(host, Some("private"));
    }
    for host in ["0xa.1", "012.0.0.1", "167772161", "3232235777", "[fc00::1]", "[fd12:3456::1]"] {
        check(host, Some("private"));
    }
    for host in ["169.254.0.1", "169.254.169.254", "2852039166", "0xa9fea9fe", "[fe80::1]"] {
        check(host, Some("link-local"));
    }
    for host in ["100.64.0.1", "100.127.255.255", "100.100.100.200"] {
        check(host, Some("carrier-grade nat"));
    }
    check("[fd00:ec2::254]", Some("private"));
    check("168.63.129.16", Some("cloud metadata"));
    check("192.0.0.192", Some("reserved"));
}

#[test]
fn what_leads_nowhere_is_refused() {
    for host in ["224.0.0.1", "239.255.255.250", "[ff02::1]"] {
        check(host, Some("multicast"));
    }
    for host in ["192.0.2.1", "198.51.100.1", "203.0.113.9", "[2001:db8::1]", "[3fff::1]"] {
        check(host, Some("documentation"));
    }
    for host in ["240.0.0.1", "255.255.255.254", "[100::1]", "[4000::1]", "[fec0::1]", "[5f00::1]"]
    {
        check(host, Some("reserved"));
    }
    check("255.255.255.255", Some("broadcast"));
    check("198.19.255.255", Some("benchmarking"));
    check("[2001:2::1]", Some("reserved"));
}

#[test]
fn ipv4_inside_ipv6_is_refused() {
    for host in ["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:a9fe:a9fe]"] {
        check(host, Some("ipv4-mapped"));
    }
    check("[::ffff:1.1.1.1]", Some("ipv4-mapped"));
    for host in ["[::127.0.0.1]", "[::7f00:1]", "[::a00:1]"] {
        check(host, Some("ipv4-compatible"));
    }
    for host in ["[64:ff9b::127.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::1]"] {
        check(host, Some("nat64"));
    }
    for host in ["[2002:7f00:1::]", "[2002:a00:1::1]"] {
        check(host, Some("6to4"));
    }
    check("[2001:0:4136:e378:8000:63bf:3fff:fdd2]", Some("teredo"));
    check("[::ffff:0:127.0.0.1]", Some("reserved"));
    check("192.88.99.1", Some("6to4 relay"));
}

#[test]
fn the_public_is_let_through() {
    for host in [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.1",
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.1",
        "192.167.255.255",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "16843009",
        "[2606:4700:4700::1111]",
        "[2a00:1450::1]",
    ] {
        check(host, None);
    }
}

#[test]
fn a_list_lets_through_what_it_names_only() {
    let allow = Allow::new(["10.1.0.0/16".parse().unwrap(), "fd00::/8".parse().unwrap()]);
    for good in ["10.1.2.3", "::ffff:10.1.2.3", "fd00::1", "1.1.1.1"] {
        assert!(allow.check(good.parse().unwrap()).is_ok(), "{good} was refused");
    }
    for bad in ["10.2.0.1", "::ffff:10.2.0.1", "64:ff9b::10.1.2.3", "fc00::1", "127.0.0.1"] {
        assert!(allow.check(bad.parse().unwrap()).is_err(), "{bad} was let through");
    }
}

#[test]
fn a_name_is_no_address() {
    for host in ["localhost", "127.0.0.1.nip.example", "x", "127.0.0.1x"] {
        let url = format!("http://{host}/").parse().unwrap();
        assert_eq!(of_host(&url), None, "{host}");
    }
}
