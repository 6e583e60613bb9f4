//! Stylesheet, script and icon, embedded in the binary.

use crate::rest::AsItIs;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// A file that browsers load.
struct Asset {
    name: &'static str,
    media_type: &'static str,
    bytes: &'static [u8],
}

const ASSETS: [Asset; 3] = [
    Asset {
        name: "app.css",
        media_type: "text/css; charset=utf-8",
        bytes: include_bytes!("assets/app.css"),
    },
    Asset {
        name: "app.js",
        media_type: "text/javascript; charset=utf-8",
        bytes: include_bytes!("assets/app.js"),
    },
    Asset {
        name: "icon.svg",
        media_type: "image/svg+xml",
        bytes: include_bytes!("assets/icon.svg"),
    },
];

/// The digest of all files: part of their addresses, so that browsers may keep them for ever.
static HASH: LazyLock<String> = LazyLock::new(|| {
    let mut digest = Sha256::new();
    ASSETS.iter().for_each(|asset| digest.update(asset.bytes));
    digest.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
});

/// Returns the address of a file.
pub(super) fn link(base: &str, name: &str) -> String {
    format!("{base}/assets/{}/{name}", *HASH)
}

/// `GET /ui/assets/{hash}/{name}`
pub(super) async fn serve(Path((hash, name)): Path<(String, String)>) -> Response {
    let found = ASSETS.iter().find(|asset| asset.name == name);
    let Some(asset) = found else { return StatusCode::NOT_FOUND.into_response() };
    // A page of another release asks for another hash: it gets what there is, for this time only.
    let is_current = hash == *HASH;
    let kept = if is_current { "public, max-age=31536000, immutable" } else { "no-store" };
    let nosniff = (HeaderName::from_static("x-content-type-options"), "nosniff");
    let headers = [(CONTENT_TYPE, asset.media_type), (CACHE_CONTROL, kept), nosniff];
    let mut response = (headers, asset.bytes).into_response();
    response.extensions_mut().insert(AsItIs);
    response
}
