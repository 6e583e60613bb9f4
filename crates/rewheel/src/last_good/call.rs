//! Calls whose results are cached.

use super::{Good, LastGood};
use crate::error::Error;
use crate::fallback::Observed;
use crate::retry::marker::{Async, Blocking};
use crate::retry::{Blocks, Call, HasHooks, NoteGiveUp};
use std::borrow::Borrow;
use std::future::IntoFuture;
use std::hash::Hash;
use std::sync::Arc;

impl<F, A, Fut, T, E, J, H, S> Call<F, Async<A, Fut, T, E>, J, H, S>
where
    Call<F, Async<A, Fut, T, E>, J, NoteGiveUp<H>, S>:
        IntoFuture<Output = Result<T, Error<E>>, IntoFuture: HasHooks<NoteGiveUp<H>>>,
    S: Observed,
{
    /// Returns the value of this key from the cache, or makes the call and stores its value: see [`LastGood`]. A value that
    /// [`judge`](Call::judge) or [`when_ok`](Call::when_ok) calls a failure is not stored.
    ///
    /// ```
    /// use rewheel::{LastGood, Pipeline, Retry, minutes, seconds};
    /// # use std::io;
    /// # async fn fetch_rate(currency: &str) -> io::Result<f64> { Ok(1.1) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let fetch = Pipeline::new().timeout(seconds(2)).retry(Retry::EXTERNAL_API);
    /// let rates = LastGood::ttl(seconds(60)).stale_if_error(minutes(60)).build();
    ///
    /// let rate = fetch.run(|_| fetch_rate("EUR")).last_good(&rates, "EUR").await?;
    /// # let _: LastGood<String, f64, io::Error> = rates;
    /// # assert_eq!(*rate, 1.1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails with the error of the call if there is no value that may be returned instead.
    pub async fn last_good<K, Q>(
        self,
        cache: &LastGood<K, T, E>,
        key: &Q,
    ) -> Result<Good<T>, Error<Arc<E>>>
    where
        K: Hash + Eq + Clone + Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let call = async {
            match self.ended().await {
                (Ok(_), Some(failed)) => Err(failed.to_error()),
                (result, _) => result,
            }
        };
        cache.get_or_run(key, call).await
    }
}

impl<F, A, T, E, J, H, S> Call<F, Blocking<A, T, E>, J, H, S>
where
    for<'a> Call<F, Blocking<A, T, E>, J, &'a mut NoteGiveUp<H>, S>: Blocks<T, E>,
    S: Observed,
{
    /// As [`last_good`](Call::last_good), for a call that blocks.
    ///
    /// # Errors
    /// Fails with the error of the call if there is no value that may be returned instead.
    pub fn call_last_good<K, Q>(
        self,
        cache: &LastGood<K, T, E>,
        key: &Q,
    ) -> Result<Good<T>, Error<Arc<E>>>
    where
        K: Hash + Eq + Clone + Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        cache.get_or_run_blocking(key, || match self.ended_blocking() {
            (Ok(_), Some(failed)) => Err(failed.to_error()),
            (result, _) => result,
        })
    }
}
