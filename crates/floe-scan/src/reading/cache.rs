//! What was decoded once: kept within a bound of bytes, and decoded by one of all who ask at the same time.

use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;

use moka::sync::Cache;
use tokio::sync::OnceCell;

use crate::error::Result;

/// Decoded values by key.
#[derive(Debug)]
pub(super) struct Decoded<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    values: Cache<K, Arc<OnceCell<Arc<V>>>>,
}

impl<K, V> Decoded<K, V>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// Keeps values of `bytes` in all, each of which weighs what `weigh` says.
    pub(super) fn new(bytes: u64, weigh: impl Fn(&V) -> usize + Send + Sync + 'static) -> Self {
        let weigh = move |_: &K, cell: &Arc<OnceCell<Arc<V>>>| match cell.get() {
            Some(value) => u32::try_from(weigh(value)).unwrap_or(u32::MAX).max(1),
            // Under way: weighed when it is there.
            None => 1,
        };
        Self {
            values: Cache::builder().max_capacity(bytes).weigher(weigh).build(),
        }
    }

    /// The value, if it is there.
    pub(super) fn get(&self, key: &K) -> Option<Arc<V>> {
        self.values.get(key)?.get().cloned()
    }

    /// The value; if it isn't there, `decode` makes it. Whoever asks meanwhile waits for it. An error is not kept.
    pub(super) async fn get_or_decode<F>(&self, key: K, decode: F) -> Result<Arc<V>>
    where
        F: Future<Output = Result<V>>,
    {
        let cell = self.values.get_with(key.clone(), Arc::default);
        if let Some(value) = cell.get() {
            return Ok(value.clone());
        }
        let value = cell
            .get_or_try_init(|| async { decode.await.map(Arc::new) })
            .await?
            .clone();
        // Only now can it be weighed.
        self.values.insert(key, cell);
        Ok(value)
    }

    /// Keeps a value that was made on the way to something else.
    pub(super) fn insert(&self, key: K, value: Arc<V>) {
        self.values
            .insert(key, Arc::new(OnceCell::new_with(Some(value))));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::error::{Error, ErrorKind};

    #[tokio::test]
    async fn a_value_is_decoded_once_however_many_ask() {
        let cache = Decoded::new(1000, |value: &String| value.len());
        let decoded = AtomicUsize::new(0);
        let ask = || {
            cache.get_or_decode(1, async {
                tokio::task::yield_now().await;
                decoded.fetch_add(1, Ordering::Relaxed);
                Ok("one".to_owned())
            })
        };
        let (a, b, c) = tokio::join!(ask(), ask(), ask());
        assert_eq!(
            [a.unwrap(), b.unwrap(), c.unwrap()].map(|v| v.len()),
            [3; 3]
        );
        assert_eq!(decoded.into_inner(), 1);
    }

    #[tokio::test]
    async fn an_error_is_not_kept() {
        let cache = Decoded::new(1000, |_: &u8| 1);
        let fail = async { Err(Error::new(ErrorKind::Read, "no")) };
        assert!(cache.get_or_decode(1, fail).await.is_err());
        assert_eq!(*cache.get_or_decode(1, async { Ok(7) }).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn values_weigh_what_they_take() {
        let cache = Decoded::new(1000, |value: &Vec<u8>| value.len());
        for key in 0..100 {
            let value = async { Ok(vec![0; 100]) };
            cache.get_or_decode(key, value).await.unwrap();
        }
        cache.values.run_pending_tasks();
        assert!(cache.values.weighted_size() <= 1000);
        assert!(cache.values.entry_count() <= 10);
    }
}
