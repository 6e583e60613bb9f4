//! Limits which private addresses a kind set over REST may allow.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Deserializer};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The networks that kinds set over REST may list in `callback.allow`: the setting `server.callback_allow`.
///
/// It never includes link-local addresses and cloud metadata services, which give out the machine's credentials. Only a kind in the
/// config file may list those.
///
/// ```
/// use rewheel_server::callback::Ceiling;
///
/// let ceiling = Ceiling::new(["10.0.0.0/8".parse()?]);
/// assert!(ceiling.check(&"10.1.0.0/16".parse()?).is_ok());
/// assert!(ceiling.check(&"10.0.0.0/7".parse()?).is_err());
/// # Ok::<(), ipnet::AddrParseError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ceiling(Vec<IpNet>);

impl Ceiling {
    /// Creates a ceiling from networks, in any order.
    pub fn new(networks: impl IntoIterator<Item = IpNet>) -> Ceiling {
        let mut networks: Vec<IpNet> = networks.into_iter().map(canonical).collect();
        networks.sort_unstable();
        networks.dedup();
        Ceiling(networks)
    }

    /// The loopback addresses.
    pub(crate) fn loopback() -> Ceiling {
        let v4 = Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8);
        Ceiling::new([IpNet::V4(v4), IpNet::from(IpAddr::V6(Ipv6Addr::LOCALHOST))])
    }

    /// Accepts a network that a kind may list.
    ///
    /// # Errors
    /// Says why it must not be listed.
    pub fn check(&self, network: &IpNet) -> Result<(), String> {
        let block = canonical(*network);
        if is_reserved(block.network()) && is_reserved(block.broadcast()) {
            return Err(format!(
                "must not list {network}: only a kind in the config file of the server may call link-local and cloud metadata addresses"
            ));
        }
        if self.0.iter().any(|limit| limit.contains(&block)) {
            return Ok(());
        }
        Err(format!(
            "must not list {network}, which is not in server.callback_allow: add the network there, or define the kind in the config file of the server"
        ))
    }

    /// Returns whether a kind may reach this address.
    pub(super) fn covers(&self, address: IpAddr) -> bool {
        let canonical = address.to_canonical();
        let is_listed = |limit: &IpNet| limit.contains(&address) || limit.contains(&canonical);
        !is_reserved(address) && self.0.iter().any(is_listed)
    }

    /// Returns whether it includes every address of a family.
    pub(crate) fn is_everything(&self) -> bool {
        self.0.iter().any(|network| network.prefix_len() == 0)
    }
}

impl<'de> Deserialize<'de> for Ceiling {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Ceiling, D::Error> {
        let networks: Result<Vec<IpNet>, String> =
            Vec::<String>::deserialize(from)?.iter().map(|text| parse_network(text)).collect();
        networks.map(Ceiling::new).map_err(serde::de::Error::custom)
    }
}

/// Parses a network, or a single address as a network.
///
/// # Errors
/// Says which form is expected.
pub(super) fn parse_network(text: &str) -> Result<IpNet, String> {
    let alone = || text.parse::<IpAddr>().map(IpNet::from).ok();
    text.parse::<IpNet>().ok().or_else(alone).ok_or_else(|| {
        format!("`{text}` is neither an IP address nor a network such as 10.0.0.0/8")
    })
}

/// Converts a network of mapped addresses (`::ffff:10.0.0.0/104`) to IPv4.
fn canonical(network: IpNet) -> IpNet {
    let network = network.trunc();
    let mapped = match network {
        IpNet::V6(v6) => v6.network().to_ipv4_mapped().zip(v6.prefix_len().checked_sub(96)),
        IpNet::V4(_) => None,
    };
    let mapped = mapped.and_then(|(address, prefix)| Ipv4Net::new(address, prefix).ok());
    mapped.map_or(network, IpNet::V4)
}

/// Link-local addresses and cloud metadata services.
const RESERVED_V4: [Ipv4Net; 4] = [
    Ipv4Net::new_assert(Ipv4Addr::new(169, 254, 0, 0), 16),
    // Alibaba, Azure, Oracle.
    Ipv4Net::new_assert(Ipv4Addr::new(100, 100, 100, 200), 32),
    Ipv4Net::new_assert(Ipv4Addr::new(168, 63, 129, 16), 32),
    Ipv4Net::new_assert(Ipv4Addr::new(192, 0, 0, 192), 32),
];

const RESERVED_V6: [Ipv6Net; 3] = [
    Ipv6Net::new_assert(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
    // Amazon, Google.
    Ipv6Net::new_assert(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32),
    Ipv6Net::new_assert(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128),
];

/// Networks with embedded IPv4 addresses: compatible, mapped, translated, NAT64, Teredo, 6to4.
const CARRIERS: [Ipv6Net; 6] = [
    Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 96),
    Ipv6Net::new_assert(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96),
    Ipv6Net::new_assert(Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96),
    Ipv6Net::new_assert(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 32),
    Ipv6Net::new_assert(Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32),
    Ipv6Net::new_assert(Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
];

/// Returns whether only a kind in the config file may reach an address.
pub(super) fn is_reserved(address: IpAddr) -> bool {
    let v4 = |address: &Ipv4Addr| RESERVED_V4.iter().any(|network| network.contains(address));
    match address {
        IpAddr::V4(address) => v4(&address),
        IpAddr::V6(address) => {
            RESERVED_V6.iter().any(|network| network.contains(&address))
                || carried(address).iter().any(v4)
        }
    }
}

/// Returns every IPv4 address that a gateway may extract from an IPv6 address: gateways place it differently.
fn carried(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    if !CARRIERS.iter().any(|network| network.contains(&address)) {
        return Vec::new();
    }
    let octets = address.octets();
    let at = |places: [usize; 4]| Ipv4Addr::from(places.map(|place| octets[place]));
    let last = at([12, 13, 14, 15]);
    vec![
        last,
        // Teredo: the client's address, inverted; the server's address.
        Ipv4Addr::from(last.octets().map(|octet| !octet)),
        at([4, 5, 6, 7]),
        // 6to4.
        at([2, 3, 4, 5]),
        // NAT64 behind prefixes of 40, 48, 56 and 64 bits.
        at([5, 6, 7, 9]),
        at([6, 7, 9, 10]),
        at([7, 9, 10, 11]),
        at([9, 10, 11, 12]),
    ]
}

#[cfg(test)]
mod tests {
    use super::{Ceiling, is_reserved};

    fn ceiling(networks: &[&str]) -> Ceiling {
        Ceiling::new(networks.iter().map(|text| text.parse().unwrap()))
    }

    #[test]
    fn a_block_must_be_within_one_of_the_ceiling() {
        let limits = ceiling(&["10.0.0.0/8", "192.168.1.0/24", "fd12::/16"]);
        for good in
            ["10.0.0.0/8", "10.1.2.0/24", "192.168.1.7/32", "fd12::/64", "::ffff:10.1.0.0/112"]
        {
            assert!(limits.check(&good.parse().unwrap()).is_ok(), "{good}");
        }
        for bad in
            ["0.0.0.0/0", "::/0", "10.0.0.0/7", "192.168.0.0/16", "127.0.0.1/32", "::ffff:0:0/96"]
        {
            let why = limits.check(&bad.parse().unwrap()).unwrap_err();
            assert!(why.contains("not in server.callback_allow"), "{bad}: {why}");
        }
        assert!(Ceiling::default().check(&"10.0.0.0/8".parse().unwrap()).is_err());
    }

    #[test]
    fn link_local_and_metadata_addresses_are_never_within_it() {
        let everything = ceiling(&["0.0.0.0/0", "::/0"]);
        for bad in [
            "169.254.169.254",
            "169.254.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fe80::a9fe:a9fe",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "::ffff:169.254.169.254",
            "::ffff:0:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::169.254.169.254",
            "64:ff9b::6464:64c8",
            "64:ff9b:1::169.254.169.254",
            "64:ff9b:1:a9fe:a9:fe00::",
            "2002:a9fe:a9fe::1",
            "2001:0:1:2:3:4:5601:5601",
        ] {
            let address = bad.parse().unwrap();
            assert!(is_reserved(address) && !everything.covers(address), "{bad}");
            let why = everything.check(&address.into()).unwrap_err();
            assert!(why.contains("only a kind in the config file of the server"), "{bad}: {why}");
        }
        for good in ["10.0.0.1", "127.0.0.1", "::1", "fd00::1", "64:ff9b::10.0.0.1", "2002:a00:1::"]
        {
            let address = good.parse().unwrap();
            assert!(everything.covers(address), "{good}");
        }
        assert!(everything.check(&"169.254.0.0/16".parse().unwrap()).is_err());
        assert!(everything.check(&"fe80::/10".parse().unwrap()).is_err());
    }
}
