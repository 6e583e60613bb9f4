//! Creates a fresh store for each benchmark round.

use super::report::About;
use super::{BenchArgs, raw};
use anyhow::{Context, Result, bail};
use rewheel_core::SecretUrl;
use std::path::PathBuf;

#[cfg(feature = "postgres")]
use super::server::Server;

/// Where stores are created.
pub(super) enum Place {
    /// Files in a folder that is deleted afterwards.
    Folder(Folder),
    /// A store of the user, which must be empty. The folder is for the raw benchmark.
    Named { url: SecretUrl, folder: Folder },
    /// A database server, with a schema for each store.
    #[cfg(feature = "postgres")]
    Server(Box<Server>),
}

impl Place {
    pub(super) async fn of(args: &BenchArgs) -> Result<Place> {
        match &args.store {
            None => Ok(Place::Folder(Folder::new()?)),
            #[cfg(feature = "postgres")]
            Some(url) if url.expose().starts_with("postgres") => {
                Ok(Place::Server(Box::new(Server::connect(url).await?)))
            }
            Some(url) if args.raw && !url.expose().starts_with("sqlite://") => {
                bail!(
                    "--raw cannot measure a plain table beside this store: use --raw with SQLite or PostgreSQL, or omit it"
                )
            }
            Some(_) if args.rounds > 1 && args.what.len() != 1 => {
                bail!(
                    "--store with several rounds needs exactly one benchmark, because all rounds use that store"
                )
            }
            Some(url) => Ok(Place::Named { url: url.clone(), folder: Folder::new()? }),
        }
    }

    /// Returns the URL of an empty store; `name` is new each time.
    pub(super) async fn make(&self, name: &str) -> Result<SecretUrl> {
        match self {
            Place::Folder(folder) => {
                let path = folder.0.join(format!("{name}.db"));
                Ok(SecretUrl::new(format!("sqlite://{}", path.display())))
            }
            Place::Named { url, .. } => Ok(url.clone()),
            #[cfg(feature = "postgres")]
            Place::Server(server) => server.make(name).await,
        }
    }

    /// Deletes what [`make`](Place::make) created. Files are deleted with their folder.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(unused_variables, reason = "only schemas have one")
    )]
    pub(super) async fn clear(&self, name: &str) -> Result<()> {
        match self {
            Place::Folder(_) | Place::Named { .. } => Ok(()),
            #[cfg(feature = "postgres")]
            Place::Server(server) => server.clear(name).await,
        }
    }

    /// Returns the rates of one plain table in the same place: inserts and takes per second.
    pub(super) async fn raw(&self, args: &BenchArgs, name: &str) -> Result<(f64, f64)> {
        match self {
            Place::Folder(folder) | Place::Named { folder, .. } => {
                raw::round(&folder.0.join(format!("{name}.db")), args.jobs(), args.payload_bytes)
            }
            #[cfg(feature = "postgres")]
            Place::Server(server) => server.raw(name, args.jobs(), args.payload_bytes).await,
        }
    }

    /// Returns how many rows were read so far in a store that was created here, if the server counts them.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(unused_variables, reason = "only schemas have one")
    )]
    pub(super) async fn rows_read(&self, name: &str) -> Result<Option<u64>> {
        match self {
            Place::Folder(_) | Place::Named { .. } => Ok(None),
            #[cfg(feature = "postgres")]
            Place::Server(server) => server.rows_read(name).await.map(Some),
        }
    }

    pub(super) async fn about(&self) -> Result<About> {
        match self {
            Place::Folder(_) => Ok(About::sqlite(&SecretUrl::new("sqlite://"))),
            Place::Named { url, .. } if url.expose().starts_with("sqlite://") => {
                Ok(About::sqlite(url))
            }
            Place::Named { url, .. } => {
                let store = rewheel_stores::connect(url.expose()).await?;
                let name = store.capabilities().name;
                store.close().await?;
                Ok(About::named(name))
            }
            #[cfg(feature = "postgres")]
            Place::Server(server) => server.about().await,
        }
    }
}

/// A folder in the current directory: a temporary folder is often not on a disk.
pub(super) struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder> {
        let path = PathBuf::from(format!(".rewheel-bench-{}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| {
            format!(
                "cannot create the folder `{}`: run the command in a folder that you can write to",
                path.display()
            )
        })?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The name of a folder that stays behind says what it is.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
