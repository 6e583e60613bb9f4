//! Blocks callbacks to addresses that are not public.
//!
//! Otherwise a client that may choose a URL could reach addresses that only this machine can reach: local services, the private network
//! and the cloud's metadata service.

use super::ceiling::{Ceiling, is_reserved};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::Url;

/// The non-public addresses that a kind may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Allow {
    networks: Vec<IpNet>,
    /// The upper bound for these addresses; none for kinds in the config file.
    ceiling: Option<Ceiling>,
}

/// A non-public address that is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("callbacks to {address} are not allowed ({what}): {hint}")]
pub struct RefusedAddress {
    /// The address.
    pub address: IpAddr,
    /// The sort of address.
    pub what: &'static str,
    /// How to allow it.
    pub hint: &'static str,
}

impl Allow {
    /// Creates a list of allowed networks, in any order.
    pub fn new(networks: impl IntoIterator<Item = IpNet>) -> Allow {
        let mut networks: Vec<IpNet> =
            networks.into_iter().map(|network| network.trunc()).collect();
        networks.sort_unstable();
        networks.dedup();
        Allow { networks, ceiling: None }
    }

    /// Adds a ceiling: an address must be in both.
    #[must_use]
    pub fn within(self, ceiling: &Ceiling) -> Allow {
        Allow { ceiling: Some(ceiling.clone()), ..self }
    }

    /// Accepts an address that is public or listed.
    ///
    /// # Errors
    /// Says which address is refused and why.
    ///
    /// ```
    /// use rewheel_server::callback::Allow;
    ///
    /// let allow = Allow::new(["10.0.0.0/8".parse()?]);
    /// assert!(allow.check("10.1.2.3".parse()?).is_ok());
    /// assert!(allow.check("1.1.1.1".parse()?).is_ok());
    /// assert_eq!(
    ///     allow.check("169.254.169.254".parse()?).unwrap_err().to_string(),
    ///     "callbacks to 169.254.169.254 are not allowed (link-local): if jobs may call this address, add it to `callback.allow`",
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check(&self, address: IpAddr) -> Result<(), RefusedAddress> {
        let Some(what) = not_public(address) else { return Ok(()) };
        let refused = |hint| Err(RefusedAddress { address, what, hint });
        match &self.ceiling {
            _ if !self.lists(address) => {
                refused("if jobs may call this address, add it to `callback.allow`")
            }
            Some(_) if is_reserved(address) => {
                refused("only a kind in the config file of the server may call this address")
            }
            Some(ceiling) if !ceiling.covers(address) => refused(
                "the address is not in server.callback_allow of the server config; add it there if this is intended",
            ),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns whether it allows every address of a family.
    pub(crate) fn is_everything(&self) -> bool {
        self.networks.iter().any(|network| network.prefix_len() == 0)
    }

    /// Returns whether an address is listed. For a connection a mapped address is the same as its IPv4 address, so either form counts.
    fn lists(&self, address: IpAddr) -> bool {
        let canonical = address.to_canonical();
        self.networks
            .iter()
            .any(|network| network.contains(&address) || network.contains(&canonical))
    }
}

/// Returns the IP address in a URL, in any notation: the parser has already turned `http://0x7f.1/` into `http://127.0.0.1/`.
pub(super) fn of_host(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).parse().ok()
}

/// Returns the sort of address, if it is not public.
fn not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => not_public_v4(address),
        IpAddr::V6(address) => not_public_v6(address),
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

/// IANA's special-purpose registry, plus addresses that clouds use.
const NOT_PUBLIC_V4: [(Ipv4Net, &str); 17] = [
    (v4(0, 0, 0, 0, 8), "this host"),
    (v4(10, 0, 0, 0, 8), "private"),
    (v4(100, 64, 0, 0, 10), "carrier-grade nat"),
    (v4(127, 0, 0, 0, 8), "loopback"),
    // Azure's metadata and health service, inside the public range.
    (v4(168, 63, 129, 16, 32), "cloud metadata"),
    (v4(169, 254, 0, 0, 16), "link-local"),
    (v4(172, 16, 0, 0, 12), "private"),
    (v4(192, 0, 0, 0, 24), "reserved"),
    (v4(192, 0, 2, 0, 24), "documentation"),
    (v4(192, 88, 99, 0, 24), "6to4 relay"),
    (v4(192, 168, 0, 0, 16), "private"),
    (v4(198, 18, 0, 0, 15), "benchmarking"),
    (v4(198, 51, 100, 0, 24), "documentation"),
    (v4(203, 0, 113, 0, 24), "documentation"),
    (v4(224, 0, 0, 0, 4), "multicast"),
    (v4(255, 255, 255, 255, 32), "broadcast"),
    (v4(240, 0, 0, 0, 4), "reserved"),
];

fn not_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    NOT_PUBLIC_V4.iter().find(|(network, _)| network.contains(&address)).map(|(_, what)| *what)
}

/// Networks with embedded IPv4 addresses reach whatever their gateway reaches: the whole network is refused.
const NOT_PUBLIC_V6: [(Ipv6Net, &str); 12] = [
    (Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 128), "this host"),
    (Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128), "loopback"),
    (Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 96), "ipv4-compatible"),
    (v6(0x64, 0xff9b, 0, 32), "nat64"),
    (v6(0x2001, 0, 0, 32), "teredo"),
    (v6(0x2001, 0, 0, 23), "reserved"),
    (v6(0x2001, 0xdb8, 0, 32), "documentation"),
    (v6(0x2002, 0, 0, 16), "6to4"),
    (v6(0x3fff, 0, 0, 20), "documentation"),
    (v6(0xfc00, 0, 0, 7), "private"),
    (v6(0xfe80, 0, 0, 10), "link-local"),
    (v6(0xff00, 0, 0, 8), "multicast"),
];

/// The whole range of globally routed addresses.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 0, 3);

fn not_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    if address.to_ipv4_mapped().is_some() {
        return Some("ipv4-mapped");
    }
    let known = NOT_PUBLIC_V6.iter().find(|(network, _)| network.contains(&address));
    match known {
        Some((_, what)) => Some(what),
        None if GLOBAL_V6.contains(&address) => None,
        None => Some("reserved"),
    }
}

#[cfg(test)]
mod tests;
