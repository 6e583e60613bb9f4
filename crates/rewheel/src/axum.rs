//! Axum integration: a layer for the `Idempotency-Key` header, and health routes.
//!
//! ```
//! use axum::Router;
//! use axum::body::Body;
//! use axum::http::{Request, StatusCode};
//! use axum::routing::post;
//! use rewheel::axum::IdempotencyLayer;
//! use rewheel::{Idempotency, MemoryIdempotency};
//! use tower::ServiceExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let idempotency = Idempotency::new(MemoryIdempotency::new(100_000, 1 << 26));
//! // Separate callers by any value that identifies them; here by a header that a gateway sets.
//! let once = IdempotencyLayer::per_caller(&idempotency, |request| {
//!     let account = request.headers.get("x-account").expect("no request comes past the gateway");
//!     account.as_bytes().escape_ascii().to_string()
//! });
//! let app: Router = Router::new()
//!     .route("/charges", post(|| async { (StatusCode::CREATED, "charged") }))
//!     .layer(once.required());
//!
//! let charge = || Request::post("/charges").header("x-account", "acme").header("idempotency-key", "order-17");
//! let first = app.clone().oneshot(charge().body(Body::from("4200")).unwrap()).await.unwrap();
//! let again = app.clone().oneshot(charge().body(Body::from("4200")).unwrap()).await.unwrap();
//! assert_eq!((first.status(), again.status()), (StatusCode::CREATED, StatusCode::CREATED));
//! assert_eq!(again.headers()["idempotent-replayed"], "true");
//!
//! let other = app.oneshot(charge().body(Body::from("9900")).unwrap()).await.unwrap();
//! assert_eq!(other.status(), StatusCode::UNPROCESSABLE_ENTITY);
//! # }
//! ```

mod problem;
mod body;
mod kept;
mod header;
mod multipart;
mod layer;
mod health;
mod fence;

pub use self::fence::{
    Admitted, FenceGuardLayer, FenceGuardService, FenceStore, FenceStoreError, MemoryFences,
    fence_guard, fence_sql,
};
pub use self::header::{KeyHeaderError, idempotency_key};
pub use self::health::{Health, HealthChecks, HealthReport, HealthState};
pub use self::kept::KeptResponse;
pub use self::layer::{IdempotencyLayer, IdempotencyService};
