//! What readers have worked out of a machine, kept for the next one who asks.
//!
//! Clones of a machine share it; a machine that differs in anything has its own. Only what follows from the description
//! and the key belongs here, so that it makes no difference whether it was kept.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Most results that are kept; beyond, all are forgotten, because keys such as placements may never come again.
const MOST: usize = 64;

type Kept = HashMap<(TypeId, Vec<u32>), Arc<dyn Any + Send + Sync>>;

/// Results by type and key.
#[derive(Clone, Default)]
pub struct Memo(Arc<Mutex<Kept>>);

impl Memo {
    /// What was made before for this type and `key`, or else what `make` makes.
    pub fn get<T: Send + Sync + 'static>(&self, key: Vec<u32>, make: impl FnOnce() -> T) -> Arc<T> {
        let key = (TypeId::of::<T>(), key);
        let kept = |memo: &Memo| memo.lock(|kept| kept.get(&key).cloned());
        if let Some(found) = kept(self).and_then(|found| found.downcast().ok()) {
            return found;
        }
        // Made outside the lock: others need not wait, and at worst make the same.
        let made = Arc::new(make());
        self.lock(|kept| {
            if kept.len() >= MOST {
                kept.clear();
            }
            kept.insert(key, made.clone());
        });
        made
    }

    fn lock<R>(&self, work: impl FnOnce(&mut Kept) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Memo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memo")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_made_once_for_its_type_and_key() {
        let (memo, mut made) = (Memo::default(), 0);
        let clone = memo.clone();
        for (memo, key) in [(&memo, 1), (&clone, 1), (&memo, 2), (&clone, 2)] {
            let found = memo.get(vec![key], || {
                made += 1;
                key * 10
            });
            assert_eq!(*found, key * 10);
        }
        assert_eq!(*memo.get(vec![1], || "another type"), "another type");
        assert_eq!(made, 2);
    }

    #[test]
    fn what_is_kept_has_an_end() {
        let memo = Memo::default();
        for key in 0..1000 {
            memo.get(vec![key], || key);
        }
        assert!(memo.lock(|kept| kept.len()) <= MOST);
    }
}
