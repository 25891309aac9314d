//! What was decoded once is kept for the whole process: decoded forms of immutable files, bounded in bytes.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::OnceCell;

/// Decoded files by key. Of several that ask for one at the same time, one decodes.
pub(crate) struct DecodedCache<K, V> {
    kept: moka::sync::Cache<K, Arc<V>>,
    loading: Mutex<HashMap<K, Weak<OnceCell<Arc<V>>>>>,
}

/// Keys being loaded, beyond which given-up ones are swept out.
const MOST_LOADING: usize = 64;

impl<K, V> DecodedCache<K, V>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// A cache of so many bytes, as `weigh` counts them; a value that weighs more is not kept.
    pub(crate) fn new(bytes: u64, weigh: impl Fn(&K, &V) -> usize + Send + Sync + 'static) -> Self {
        let kept = moka::sync::Cache::builder()
            .max_capacity(bytes)
            // Not moka's own policy: it weighs one large file, a manifest or a million deleted keys, against how often each of
            // the many small ones in its place was used, and never lets it in.
            .eviction_policy(moka::policy::EvictionPolicy::lru())
            .weigher(move |key, value: &Arc<V>| {
                u32::try_from(weigh(key, value)).unwrap_or(u32::MAX)
            })
            .build();
        Self {
            kept,
            loading: Mutex::default(),
        }
    }

    /// What is kept under this key.
    pub(crate) fn get(&self, key: &K) -> Option<Arc<V>> {
        self.kept.get(key)
    }

    /// What is kept under this key, or else what `load` gives, which is kept then. An error is not: who waited loads anew.
    pub(crate) async fn get_or_load<E>(
        &self,
        key: &K,
        load: impl AsyncFnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        if let Some(kept) = self.kept.get(key) {
            return Ok(kept);
        }
        let cell = self.cell(key);
        let loaded = cell
            .get_or_try_init(async || {
                // Someone may have finished between the first look and this one.
                if let Some(kept) = self.kept.get(key) {
                    return Ok(kept);
                }
                let value = Arc::new(load().await?);
                self.kept.insert(key.clone(), value.clone());
                Ok(value)
            })
            .await
            .cloned();
        self.leave(key, cell);
        loaded
    }

    /// Keeps a value.
    pub(crate) fn insert(&self, key: K, value: V) {
        self.kept.insert(key, Arc::new(value));
    }

    /// Bytes kept at the moment.
    #[cfg(test)]
    pub(crate) fn weight(&self) -> u64 {
        self.kept.run_pending_tasks();
        self.kept.weighted_size()
    }

    fn loading(&self) -> MutexGuard<'_, HashMap<K, Weak<OnceCell<Arc<V>>>>> {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cell in which the value of this key is awaited.
    fn cell(&self, key: &K) -> Arc<OnceCell<Arc<V>>> {
        let mut loading = self.loading();
        if let Some(cell) = loading.get(key).and_then(Weak::upgrade) {
            return cell;
        }
        if loading.len() >= MOST_LOADING {
            loading.retain(|_, cell| cell.strong_count() > 0);
        }
        let cell = Arc::new(OnceCell::new());
        loading.insert(key.clone(), Arc::downgrade(&cell));
        cell
    }

    /// The last one who waits for a cell clears it away.
    fn leave(&self, key: &K, cell: Arc<OnceCell<Arc<V>>>) {
        let mut loading = self.loading();
        drop(cell);
        if loading
            .get(key)
            .is_some_and(|cell| cell.strong_count() == 0)
        {
            loading.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn cache(bytes: u64) -> DecodedCache<u32, String> {
        DecodedCache::new(bytes, |_, value: &String| value.len())
    }

    #[tokio::test]
    async fn of_several_that_ask_one_loads() {
        let cache = Arc::new(cache(1000));
        let loads = Arc::new(AtomicUsize::new(0));
        let asking = (0..20).map(|_| {
            let (cache, loads) = (cache.clone(), loads.clone());
            tokio::spawn(async move {
                let load = async || {
                    loads.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                    Ok::<_, ()>("value".to_string())
                };
                cache.get_or_load(&1, load).await
            })
        });
        for asked in asking.collect::<Vec<_>>() {
            assert_eq!(*asked.await.unwrap().unwrap(), "value");
        }
        assert_eq!(loads.load(Ordering::Relaxed), 1);
        assert!(cache.loading().is_empty());
    }

    #[tokio::test]
    async fn an_error_is_not_kept() {
        let cache = cache(1000);
        let failed = cache.get_or_load(&1, async || Err("no")).await;
        assert_eq!(failed, Err("no"));
        let loaded = cache
            .get_or_load(&1, async || Ok::<_, ()>("yes".to_string()))
            .await;
        assert_eq!(*loaded.unwrap(), "yes");
        assert!(cache.get(&1).is_some());
    }

    #[tokio::test]
    async fn who_gives_up_leaves_it_to_the_next() {
        let cache = cache(1000);
        {
            let never = cache.get_or_load(&1, async || {
                std::future::pending::<Result<String, ()>>().await
            });
            let mut never = Box::pin(never);
            assert!(futures::poll!(&mut never).is_pending());
        }
        let loaded = cache
            .get_or_load(&1, async || Ok::<_, ()>("yes".to_string()))
            .await;
        assert_eq!(*loaded.unwrap(), "yes");
    }

    #[tokio::test]
    async fn the_bound_holds() {
        let cache = cache(1000);
        for key in 0..100 {
            let value = "x".repeat(90);
            cache
                .get_or_load(&key, async || Ok::<_, ()>(value))
                .await
                .unwrap();
        }
        assert!(cache.weight() <= 1000);
        assert!(cache.weight() > 0);
    }
}
