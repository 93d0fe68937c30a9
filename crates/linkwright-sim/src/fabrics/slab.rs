//! A table with reused slots, so that steady traffic allocates nothing.

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};

#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab {
            items: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// The slot of `item` until it is removed.
    #[inline]
    pub fn insert(&mut self, item: T) -> u32 {
        if let Some(id) = self.free.pop() {
            self.items[id as usize] = item;
            return id;
        }
        self.items.push(item);
        self.items.len() as u32 - 1
    }

    /// Free a slot; its item remains readable until the slot is taken again.
    #[inline]
    pub fn remove(&mut self, id: u32) {
        self.free.push(id);
    }

    /// Items inserted and not removed.
    pub fn live(&self) -> usize {
        self.items.len() - self.free.len()
    }

    /// Live items with their slots; slow.
    pub fn iter_live(&self) -> impl Iterator<Item = (u32, &T)> {
        let free: BTreeSet<u32> = self.free.iter().copied().collect();
        (0..)
            .zip(&self.items)
            .filter(move |(id, _)| !free.contains(id))
    }

    pub fn clear(&mut self) {
        self.items.clear();
        self.free.clear();
    }
}

impl<T> Deref for Slab<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> DerefMut for Slab<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}
