//! Tests a small service with the engine for tests, as docs/guide/testing.md describes.

use rewheel::{Backoff, minutes, seconds};
use rewheel_core::{Report, State};
use rewheel_engine::{Engine, JobContext, JobKind, KindSettings, SubmitError};
use rewheel_testkit::{TestEngine, TestEngineBuilder, assert_submitted};
use serde::{Deserialize, Serialize};
use std::error::Error;

#[derive(Debug, Serialize, Deserialize)]
struct ChargeCard {
    order: u64,
    cents: u64,
}

impl JobKind for ChargeCard {
    const NAME: &'static str = "charge-card";
}

#[derive(Debug, Serialize, Deserialize)]
struct RemindCustomer {
    order: u64,
}

impl JobKind for RemindCustomer {
    const NAME: &'static str = "remind-customer";
}

/// A shop that charges an order at once, and reminds the customer ten minutes later.
struct Shop<'a> {
    engine: &'a Engine,
}

impl Shop<'_> {
    async fn order(&self, order: u64, cents: u64) -> Result<(), SubmitError> {
        let key = format!("order-{order}");
        self.engine.submit(ChargeCard { order, cents }).key(&key).await?;
        self.engine.submit(RemindCustomer { order }).delay(minutes(10)).key(&key).await?;
        Ok(())
    }
}

async fn charge(_: JobContext, job: ChargeCard) -> Result<(), Report> {
    if job.cents == 0 { Err(Report::dead("an order costs something")) } else { Ok(()) }
}

fn builder() -> TestEngineBuilder {
    let settings = KindSettings {
        attempts_max: 3,
        backoff: Backoff::fixed(seconds(30)),
        ..KindSettings::default()
    };
    TestEngine::builder()
        .kind(ChargeCard::NAME, settings)
        .handler(charge)
        .handler(|_, _: RemindCustomer| async {})
}

#[tokio::test(start_paused = true)]
async fn an_order_is_charged_at_once_and_reminded_of_later() -> Result<(), Box<dyn Error>> {
    let engine = builder().start().await?;
    engine.inline(Shop { engine: &engine }.order(17, 4_200)).await?;
    assert_submitted!(engine, ChargeCard { order: 17, cents: 4_200 });
    assert_eq!(engine.succeeded().await, 1);
    assert!(engine.travel_to_next_due().await > Some(minutes(9)));
    assert_eq!(engine.succeeded().await, 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_order_that_is_sent_twice_is_charged_once() -> Result<(), Box<dyn Error>> {
    let engine = builder().start().await?;
    for _ in 0..2 {
        engine.inline(Shop { engine: &engine }.order(17, 4_200)).await?;
    }
    assert_eq!(engine.submitted::<ChargeCard>().await.len(), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_bank_that_is_down_for_a_minute_costs_no_order() -> Result<(), Box<dyn Error>> {
    let engine = builder().start().await?;
    for _ in 0..2 {
        engine.script::<ChargeCard>(Report::retry("the bank is down"));
    }
    engine.inline(Shop { engine: &engine }.order(17, 4_200)).await?;
    assert_eq!(engine.succeeded().await, 0);
    engine.travel(seconds(61)).await;
    assert_eq!(engine.succeeded().await, 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_order_of_nothing_is_a_dead_letter() -> Result<(), Box<dyn Error>> {
    let engine = builder().start().await?;
    engine.inline(Shop { engine: &engine }.order(18, 0)).await?;
    let jobs = engine.jobs().await;
    assert_eq!(jobs.iter().filter(|job| job.status.state() == State::Dead).count(), 1);
    Ok(())
}
