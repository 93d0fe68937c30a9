//! The ladder: boards of two chips, rungs and rails, static routes, and the devices cut out of it.
//!
//! ```text
//!   board 0    0 ======= 1          ===  rung: two links for the pair, one for traffic that passes
//!              |         |           |   rail: one link
//!   board 1    2 ======= 3
//!              |         |          chip 2b + parity is on board b; chips d and d+2 share a rail.
//!   board 2    4 ======= 5          Nothing wraps around.
//! ```
//!
//! A chip has two names. Its *position* is its place in the ladder, which numbers the tiles; its *device
//! id* is the order in which the host found it and does not reflect proximity. Programs run on devices:
//! single chips, and every aligned slice of 2, 4, 8, ... positions.
//!
//! Routes are static: within a board the rung, within a rail the rail; otherwise the rung of the *source*
//! board first, as traffic that passes, then the rail.

use crate::error::SimError;

/// A ladder of boards with two chips each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    boards: u32,
    /// Device id of each position.
    ids: Vec<u32>,
}

/// Outgoing links of a chip, in the order in which [`Ladder::link`] numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Rail towards larger positions.
    Up,
    /// Rail towards smaller positions.
    Down,
    /// First of the links kept for the pair of a board.
    Rung0,
    /// Second of them.
    Rung1,
    /// Link across the board for traffic of other boards.
    Through,
}

/// Number of outgoing links of a chip.
pub const EXITS: u32 = 5;

/// The way from one chip to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Position at the start.
    pub from: u32,
    /// Position at the end.
    pub to: u32,
}

impl Route {
    /// Rungs crossed: 0 or 1.
    pub fn rungs(self) -> u32 {
        (self.from ^ self.to) & 1
    }

    /// Rails crossed.
    pub fn rails(self) -> u32 {
        (self.from / 2).abs_diff(self.to / 2)
    }

    /// Whether both ends are on one board.
    pub fn is_on_board(self) -> bool {
        self.rails() == 0
    }

    /// The start of the rails: the source, or the other chip of its board.
    fn rail_start(self) -> u32 {
        self.from ^ self.rungs()
    }

    /// The position after `hop` rails.
    fn after(self, hop: u32) -> u32 {
        match self.to > self.rail_start() {
            true => self.rail_start() + 2 * hop,
            false => self.rail_start() - 2 * hop,
        }
    }

    /// The rail links, in order.
    pub fn rail_links(self) -> impl Iterator<Item = u32> {
        let up = self.to > self.rail_start();
        let exit = if up { Exit::Up } else { Exit::Down };
        (0..self.rails()).map(move |hop| Ladder::link(self.after(hop), exit))
    }

    /// All links on the way; the two of a pair are represented by the first.
    pub fn links(self) -> impl Iterator<Item = u32> {
        let rung = (self.rungs() == 1).then(|| match self.is_on_board() {
            true => Ladder::link(self.from, Exit::Rung0),
            false => Ladder::link(self.from, Exit::Through),
        });
        rung.into_iter().chain(self.rail_links())
    }
}

/// A device that a program can run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its number.
    pub id: u32,
    /// First position of its slice.
    pub first: u32,
    /// Device ids of its chips, by position.
    pub members: Vec<u32>,
}

impl Ladder {
    /// A ladder whose chip at position `i` is called `ids[i]`; the ids are 0.. in some order.
    pub fn new(boards: u32, ids: Vec<u32>) -> Result<Self, String> {
        if !boards.is_power_of_two() || boards > 32 {
            return Err(format!(
                "{boards} boards; devices are slices of 2, 4, 8, ... chips, so write 1, 2, 4, 8, 16 or 32"
            ));
        }
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..2 * boards) {
            return Err(format!(
                "the device ids must be 0..{} in the order of the ladder, each once",
                2 * boards - 1
            ));
        }
        Ok(Ladder { boards, ids })
    }

    /// Number of chips.
    pub fn chips(&self) -> u32 {
        2 * self.boards
    }

    /// Parts of the ladder, by position of a chip whether it is inside, and how many links lead out: the first boards,
    /// single chips, and one rail.
    pub fn sides(&self) -> Vec<(Vec<bool>, u32)> {
        let (boards, last) = (self.boards, self.boards - 1);
        // Traffic of a board's own pair never takes the link that is kept for the others.
        let rung = if boards > 1 { 3 } else { 2 };
        let inside = |is: &dyn Fn(u32) -> bool| (0..self.chips()).map(is).collect::<Vec<_>>();
        let first = (1..boards).map(|first| (inside(&|chip| chip < 2 * first), 2));
        let single = (0..self.chips()).map(|one| {
            let board = one / 2;
            let rails = u32::from(board > 0) + u32::from(board < last);
            (inside(&|chip| chip == one), rung + rails)
        });
        let rail = (inside(&|chip| chip % 2 == 0), rung * boards);
        first.chain(single).chain([rail]).collect()
    }

    /// How many links each exit of [`Route::links`] stands for.
    pub fn widths() -> [u32; EXITS as usize] {
        let mut widths = [1; EXITS as usize];
        widths[Exit::Rung0 as usize] = 2;
        widths
    }

    /// Number of the link that leaves position `from` by `exit`.
    pub fn link(from: u32, exit: Exit) -> u32 {
        from * EXITS + exit as u32
    }

    /// Names of all links, by number; the links that a border chip lacks are never used.
    pub fn link_names(&self) -> Vec<String> {
        let exits = ["rail up", "rail down", "rung 0", "rung 1", "rung through"];
        (0..self.chips())
            .flat_map(|chip| exits.map(|exit| format!("chip {chip} {exit}")))
            .collect()
    }

    /// Position of the chip with this device id.
    pub fn position(&self, id: u32) -> Option<u32> {
        let position = self.ids.iter().position(|&each| each == id);
        position.map(|position| position as u32)
    }

    /// All devices by id: the chips, then the slices of 2, 4, 8, ... positions.
    pub fn devices(&self) -> Vec<Device> {
        let single = |id| Device {
            id,
            first: self.position(id).expect("ids are complete"),
            members: vec![id],
        };
        let mut devices: Vec<Device> = (0..self.chips()).map(single).collect();
        let mut size = 2;
        while size <= self.chips() {
            for first in (0..self.chips()).step_by(size as usize) {
                let members = self.ids[first as usize..(first + size) as usize].to_vec();
                let id = devices.len() as u32;
                devices.push(Device { id, first, members });
            }
            size *= 2;
        }
        devices
    }

    /// The device of exactly these chips, given by device id in any order.
    pub fn device_of(&self, ids: &[u32]) -> Result<Device, SimError> {
        let missing = SimError::NoDevice;
        let last = self.chips() - 1;
        if let Some(id) = ids.iter().find(|&&id| self.position(id).is_none()) {
            return Err(missing(format!(
                "there is no chip {id}; device ids of chips are 0..{last}"
            )));
        }
        let mut wanted = ids.to_vec();
        wanted.sort_unstable();
        let same = |device: &Device| {
            let mut members = device.members.clone();
            members.sort_unstable();
            members == wanted
        };
        let devices = self.devices();
        if let Some(device) = devices.iter().find(|device| same(device)) {
            return Ok(device.clone());
        }
        let holds = |device: &&Device| wanted.iter().all(|id| device.members.contains(id));
        let smallest = devices.iter().find(holds).expect("the last holds all");
        Err(missing(format!(
            "chips {wanted:?} are not a device; a device is a chip or an aligned slice of 2, 4, 8, ... places of \
             the ladder. The smallest one with all of these is device {}, chips {:?}",
            smallest.id, smallest.members
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Ladder {
        let ids = vec![5, 7, 4, 6, 3, 1, 2, 0, 13, 15, 12, 14, 9, 11, 10, 8];
        Ladder::new(8, ids).unwrap()
    }

    fn between(ladder: &Ladder, a: u32, b: u32) -> Route {
        let at = |id| ladder.position(id).unwrap();
        Route {
            from: at(a),
            to: at(b),
        }
    }

    /// Chips that share a link with this one, as sorted device ids.
    fn neighbours(ladder: &Ladder, id: u32) -> Vec<u32> {
        let direct = |&other: &u32| {
            let route = between(ladder, id, other);
            route.rails() + route.rungs() == 1
        };
        (0..ladder.chips()).filter(direct).collect()
    }

    #[test]
    fn links_are_those_of_the_documented_server() {
        let ladder = server();
        assert_eq!(neighbours(&ladder, 1), [0, 3, 6]);
        assert!(!neighbours(&ladder, 0).contains(&3));
        // 0 and 3 meet in 1 and 2.
        let common: Vec<u32> = (neighbours(&ladder, 0).into_iter())
            .filter(|id| neighbours(&ladder, 3).contains(id))
            .collect();
        assert_eq!(common, [1, 2]);
        assert!(neighbours(&ladder, 5).contains(&4) && !neighbours(&ladder, 5).contains(&6));
        let edges: usize = (0..16).map(|id| neighbours(&ladder, id).len()).sum();
        assert_eq!(edges / 2, 8 + 14);
        // Nothing wraps around: 0-14 and 1-15 are far apart.
        assert_eq!(Route { from: 0, to: 14 }.rails(), 7);
        assert_eq!(Route { from: 1, to: 15 }.rails(), 7);
    }

    #[test]
    fn far_routes_cross_the_rung_at_the_source_and_then_all_rails() {
        let ladder = server();
        let seven_eight = between(&ladder, 7, 8);
        assert_eq!((seven_eight.rails(), seven_eight.rungs()), (7, 0));
        let farthest = between(&ladder, 7, 10);
        assert_eq!((farthest.rails(), farthest.rungs()), (7, 1));
        assert_eq!((farthest.from, farthest.to), (1, 14));
        let along: Vec<u32> = (0..=7).map(|hop| farthest.after(hop)).collect();
        assert_eq!(along, [0, 2, 4, 6, 8, 10, 12, 14]);
        let links: Vec<u32> = Route { from: 5, to: 0 }.rail_links().collect();
        assert_eq!(
            links,
            [Ladder::link(4, Exit::Down), Ladder::link(2, Exit::Down)]
        );
        let most = (0..16).flat_map(|a| (0..16).map(move |b| Route { from: a, to: b }));
        assert_eq!(most.map(|r| r.rails() + r.rungs()).max(), Some(8));
    }

    #[test]
    fn devices_are_the_slices_of_the_ladder() {
        let devices = server().devices();
        assert_eq!(devices.len(), 16 + 8 + 4 + 2 + 1);
        let members = |id: usize| devices[id].members.clone();
        assert_eq!(members(16), [5, 7]);
        assert_eq!(members(23), [10, 8]);
        assert_eq!(members(25), [3, 1, 2, 0]);
        assert_eq!(members(29), [13, 15, 12, 14, 9, 11, 10, 8]);
        assert_eq!(members(30).len(), 16);
        assert_eq!((devices[4].id, devices[4].first), (4, 2));
    }

    #[test]
    fn only_a_slice_is_a_device() {
        let ladder = server();
        assert_eq!(ladder.device_of(&[7, 5]).unwrap().id, 16);
        assert_eq!(ladder.device_of(&[0, 1, 2, 3]).unwrap().id, 25);
        let error = ladder.device_of(&[5, 4]).unwrap_err().to_string();
        assert!(error.contains("not a device") && error.contains("device 24"));
        let error = ladder.device_of(&[16]).unwrap_err().to_string();
        assert!(
            error.contains("no chip 16") && error.contains("0..15"),
            "{error}"
        );
        assert!(Ladder::new(3, (0..6).collect()).is_err());
        assert!(Ladder::new(1, vec![0, 0]).is_err());
    }
}
