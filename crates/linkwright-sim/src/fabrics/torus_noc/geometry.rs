//! Places, directed links and dimension-order routes.
//!
//! ```text
//!   south-east network             north-west network            shortest way
//!   (0,0) -> (1,0) -> wraps        (0,0) <- (1,0) <- wraps       <-> in both dimensions
//!     |        |                     ^        ^
//!     v        v    x, then y        |        |    y, then x
//! ```
//!
//! Each place of each network has its outgoing mesh links, one link from its interface into the
//! router (`inject`) and one from the router to its interface (`eject`).

use super::config::{Heading, Site};
use crate::network::{Switch, Wiring};

/// Outgoing ports of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Port {
    East,
    West,
    South,
    North,
    Inject,
    Eject,
}

/// The links that a packet still takes after its first: steps through the ports of one dimension,
/// of the other, and into the interface.
///
/// Sixteen bits for each of the three, the present one lowest: slot of the port, steps left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Route(u64);

impl Route {
    /// Go on to the next dimension, or the interface, if this one is finished; returns whether it is.
    #[inline]
    pub fn turns(&mut self) -> bool {
        let turns = self.0 & 0xff == 0;
        if turns {
            self.0 >>= 16;
        }
        turns
    }

    /// Slot of the next port; after [`Route::turns`].
    #[inline]
    pub fn onward(&mut self) -> u32 {
        self.0 -= 1;
        (self.0 >> 8) as u32 & 0xff
    }

    /// Put `steps` through the port in `slot` before the rest.
    fn before(self, slot: u8, steps: u8) -> Route {
        match steps {
            0 => self,
            _ => Route(self.0 << 16 | u64::from(slot) << 8 | u64::from(steps)),
        }
    }
}

/// A place, as coordinates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub x: u8,
    pub y: u8,
}

#[derive(Clone, Debug)]
pub(super) struct Geometry {
    width: u8,
    height: u8,
    networks: Vec<Network>,
}

/// The links of one network: `base + ports * place + slot of the port`.
#[derive(Clone, Copy, Debug)]
struct Network {
    heading: Heading,
    base: u32,
    ports: u32,
    slots: [u8; 6],
}

impl Geometry {
    pub fn new(width: u32, height: u32, headings: &[Heading]) -> Self {
        let mut networks = Vec::new();
        let mut links = 0;
        for &heading in headings {
            let list = ports(heading);
            let mut slots = [0; 6];
            for (slot, &port) in (0u8..).zip(list) {
                slots[port as usize] = slot;
            }
            networks.push(Network {
                heading,
                base: links,
                ports: list.len() as u32,
                slots,
            });
            links += width * height * list.len() as u32;
        }
        Geometry {
            width: width as u8,
            height: height as u8,
            networks,
        }
    }

    pub fn place_count(&self) -> usize {
        self.width as usize * self.height as usize
    }

    #[inline]
    pub fn place_index(&self, place: Place) -> usize {
        place.y as usize * self.width as usize + place.x as usize
    }

    #[inline]
    pub fn link(&self, network: u8, place: Place, port: Port) -> u32 {
        let slot = self.networks[network as usize].slots[port as usize];
        self.first_link(network, place) + u32::from(slot)
    }

    #[inline]
    fn first_link(&self, network: u8, place: Place) -> u32 {
        let network = &self.networks[network as usize];
        network.base + self.place_index(place) as u32 * network.ports
    }

    /// The way from one place to another, beyond the link out of the interface.
    #[inline]
    pub fn route(&self, network: u8, from: Place, to: Place) -> Route {
        let Network { heading, slots, .. } = self.networks[network as usize];
        let slot = |port: Port| slots[port as usize];
        let x = axis(heading, from.x, to.x, self.width);
        let y = axis(heading, from.y, to.y, self.height);
        let column = (slot(if x.0 { Port::West } else { Port::East }), x.1);
        let row = (slot(if y.0 { Port::North } else { Port::South }), y.1);
        let [first, second] = match heading {
            Heading::NorthWest => [row, column],
            _ => [column, row],
        };
        let last = Route(0).before(slot(Port::Eject), 1);
        last.before(second.0, second.1).before(first.0, first.1)
    }

    /// The place behind `port` of `at`, and whether the link wraps around the torus.
    #[inline]
    fn step(&self, at: Place, port: Port) -> (Place, bool) {
        let Place { x, y } = at;
        let (right, bottom) = (self.width - 1, self.height - 1);
        let (x, y, wraps) = match port {
            Port::East if x == right => (0, y, true),
            Port::East => (x + 1, y, false),
            Port::West if x == 0 => (right, y, true),
            Port::West => (x - 1, y, false),
            Port::South if y == bottom => (x, 0, true),
            Port::South => (x, y + 1, false),
            Port::North if y == 0 => (x, bottom, true),
            Port::North => (x, y - 1, false),
            Port::Inject | Port::Eject => (x, y, false),
        };
        (Place { x, y }, wraps)
    }

    /// Numbers of all links from the interface of `from` to that of `to`.
    pub fn path(&self, network: u8, from: Place, to: Place) -> Vec<u32> {
        let heading = self.networks[network as usize].heading;
        let mut links = vec![self.link(network, from, Port::Inject)];
        let (mut route, mut at) = (self.route(network, from, to), from);
        loop {
            route.turns();
            let slot = route.onward();
            links.push(self.first_link(network, at) + slot);
            match ports(heading)[slot as usize] {
                Port::Eject => return links,
                port => at = self.step(at, port).0,
            }
        }
    }

    pub fn hops(&self, network: u8, from: Place, to: Place) -> u32 {
        let heading = self.networks[network as usize].heading;
        let x = axis(heading, from.x, to.x, self.width);
        let y = axis(heading, from.y, to.y, self.height);
        u32::from(x.1) + u32::from(y.1)
    }

    /// Every link by its number: network, place, port.
    fn each(&self) -> impl Iterator<Item = (u8, Place, Port)> + '_ {
        let places =
            (0..self.height).flat_map(move |y| (0..self.width).map(move |x| Place { x, y }));
        let networks = (0u8..).zip(&self.networks);
        networks.flat_map(move |(network, Network { heading, .. })| {
            let places = places.clone();
            places.flat_map(move |place| {
                ports(*heading)
                    .iter()
                    .map(move |&port| (network, place, port))
            })
        })
    }

    /// Of every link: the port by which it leaves its place, the first link of the place where it ends, and whether
    /// it wraps around the torus.
    pub fn links(&self) -> impl Iterator<Item = (Port, u32, bool)> + '_ {
        self.each().map(|(network, place, port)| {
            let (next, wraps) = self.step(place, port);
            (port, self.first_link(network, next), wraps)
        })
    }

    /// The place where a link begins.
    pub fn place_of(&self, link: u32) -> Place {
        let link = self.each().nth(link as usize);
        link.expect("a link of this torus").1
    }

    /// All places, of which endpoints have `sites`, with the links between them.
    pub fn wiring(&self, sites: &[Site]) -> Wiring {
        let width = usize::from(self.width);
        let seats = sites
            .iter()
            .map(|site| site.y as usize * width + site.x as usize);
        let switch = |place: usize| {
            let (x, y) = ((place % width) as u32, (place / width) as u32);
            Switch {
                name: format!("({x},{y})"),
                at: Some((x, y)),
            }
        };
        let ends = |(_, from, port)| (from, self.step(from, port).0);
        let links = self.each().map(ends);
        let links = links.map(|(from, to)| (self.place_index(from), self.place_index(to)));
        Wiring::between(self.place_count(), seats, switch, links)
    }

    /// Name of every link, by index.
    pub fn names(&self) -> Vec<String> {
        let name = |(network, Place { x, y }, port)| {
            let port = format!("{port:?}").to_lowercase();
            format!("NoC {network} ({x},{y}) {port}")
        };
        self.each().map(name).collect()
    }
}

/// Whether the way from one coordinate to another leads backwards, and how many steps it has.
#[inline]
fn axis(heading: Heading, from: u8, to: u8, size: u8) -> (bool, u8) {
    let forward = ahead(from, to, size);
    let backwards = match heading {
        Heading::SouthEast => false,
        Heading::NorthWest => true,
        Heading::Shortest => 2 * u32::from(forward) > u32::from(size),
    };
    match backwards && forward > 0 {
        true => (true, size - forward),
        false => (backwards, forward),
    }
}

/// Steps from one coordinate to another in the positive direction around `size` places.
#[inline]
fn ahead(from: u8, to: u8, size: u8) -> u8 {
    match to >= from {
        true => to - from,
        false => to + (size - from),
    }
}

fn ports(heading: Heading) -> &'static [Port] {
    match heading {
        Heading::SouthEast => &[Port::East, Port::South, Port::Inject, Port::Eject],
        Heading::NorthWest => &[Port::West, Port::North, Port::Inject, Port::Eject],
        Heading::Shortest => &[
            Port::East,
            Port::West,
            Port::South,
            Port::North,
            Port::Inject,
            Port::Eject,
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wormhole() -> Geometry {
        Geometry::new(10, 12, &[Heading::SouthEast, Heading::NorthWest])
    }

    #[test]
    fn request_and_response_go_once_round_every_ring_they_use() {
        let geometry = wormhole();
        for network in 0..2 {
            for (x, y) in (0..10).flat_map(|x| (0..12).map(move |y| (x, y))) {
                let (a, b) = (Place { x: 3, y: 4 }, Place { x, y });
                let round = geometry.hops(network, a, b) + geometry.hops(network, b, a);
                let expected = if x == 3 { 0 } else { 10 } + if y == 4 { 0 } else { 12 };
                assert_eq!(round, expected);
            }
        }
    }

    #[test]
    fn two_way_links_take_the_shorter_way() {
        let torus = Geometry::new(8, 8, &[Heading::Shortest]);
        let origin = Place { x: 0, y: 0 };
        assert_eq!(torus.hops(0, origin, Place { x: 3, y: 0 }), 3);
        assert_eq!(torus.hops(0, origin, Place { x: 5, y: 7 }), 4);
        assert_eq!(torus.links().count(), 64 * 6);
    }

    #[test]
    fn routes_lead_there_in_as_many_steps_as_there_are_hops() {
        for heading in [Heading::SouthEast, Heading::NorthWest, Heading::Shortest] {
            let geometry = Geometry::new(5, 6, &[heading]);
            let links: Vec<_> = geometry.links().collect();
            let places = || (0..5).flat_map(|x| (0..6).map(move |y| Place { x, y }));
            for (from, to) in places().flat_map(|from| places().map(move |to| (from, to))) {
                let mut link = geometry.link(0, from, Port::Inject);
                let (mut route, mut steps) = (geometry.route(0, from, to), 0);
                while links[link as usize].0 != Port::Eject {
                    route.turns();
                    link = links[link as usize].1 + route.onward();
                    steps += 1;
                }
                assert_eq!(link, geometry.link(0, to, Port::Eject));
                assert_eq!(geometry.place_of(link), to);
                assert_eq!(
                    steps,
                    1 + geometry.hops(0, from, to),
                    "{heading:?} {from:?} {to:?}"
                );
            }
        }
    }

    #[test]
    fn the_longest_route_of_the_largest_torus_fits() {
        let geometry = Geometry::new(255, 255, &[Heading::SouthEast]);
        let mut route = geometry.route(0, Place { x: 1, y: 1 }, Place { x: 0, y: 0 });
        let ports = ports(Heading::SouthEast);
        let mut taken = Vec::new();
        while taken.last() != Some(&Port::Eject) {
            route.turns();
            taken.push(ports[route.onward() as usize]);
        }
        let due = [Port::East, Port::South].map(|port| [port; 254]).concat();
        assert_eq!(taken, [due, vec![Port::Eject]].concat());
    }

    #[test]
    fn names_follow_link_numbers() {
        let geometry = wormhole();
        let link = geometry.link(1, Place { x: 4, y: 2 }, Port::North);
        assert_eq!(geometry.names()[link as usize], "NoC 1 (4,2) north");
        let mesh = geometry
            .names()
            .iter()
            .filter(|n| !n.ends_with("ject"))
            .count();
        assert_eq!(mesh, 480);
    }
}
