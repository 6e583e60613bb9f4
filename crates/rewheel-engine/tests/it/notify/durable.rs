//! Tests of dead letters in a store that outlives its processes.

use super::support::{Tested, builder};
use async_trait::async_trait;
use rewheel::{millis, seconds};
use rewheel_engine::EngineSettings;
use rewheel_engine::notify::{Notice, Notifier, NotifyError, Route};
use std::future::pending;
use tokio::sync::mpsc;

/// Records each call, then accepts the notice or never returns.
struct Phone {
    rings: mpsc::UnboundedSender<Notice>,
    answers: bool,
}

#[async_trait]
impl Notifier for Phone {
    async fn notify(&self, notice: &Notice) -> Result<(), NotifyError> {
        let _ = self.rings.send(notice.clone());
        if self.answers { Ok(()) } else { pending().await }
    }
}

/// Waits for a notice about a job: on a busy machine there may be one about the lease.
async fn letter(ringing: &mut mpsc::UnboundedReceiver<Notice>) -> Notice {
    loop {
        let notice = ringing.recv().await.unwrap();
        if notice.job.is_some() {
            return notice;
        }
    }
}

/// Uses real time, because a file is written. The test waits for events.
#[tokio::test]
async fn a_letter_in_a_file_is_told_by_the_next_process() -> Tested {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}", folder.path().join("rewheel.db").display());
    let settings = EngineSettings {
        lease_ttl: millis(300),
        housekeeping: millis(20),
        ..EngineSettings::default()
    };
    let (rings, mut ringing) = mpsc::unbounded_channel();
    let phone = |answers| Phone { rings: rings.clone(), answers };
    let first = builder(rewheel_stores::connect(&url).await?)
        .settings(settings.clone())
        .notifier("phone", Route::default(), phone(false))
        .start()
        .await?;
    let job = first.submit_raw("work", Vec::new()).await?.id;
    assert_eq!(letter(&mut ringing).await.job, Some(job));
    first.kill();

    let store = rewheel_stores::connect(&url).await?;
    let second = builder(store.clone())
        .settings(settings)
        .notifier("phone", Route::default(), phone(true))
        .start()
        .await?;
    let told = tokio::time::timeout(seconds(60), letter(&mut ringing)).await?;
    assert_eq!(told.job, Some(job));
    second.shutdown(seconds(10)).await;
    assert_eq!(store.unannounced(10).await?, []);
    Ok(())
}
