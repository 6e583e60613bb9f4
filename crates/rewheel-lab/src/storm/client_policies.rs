//! What one client puts around its calls.

use rewheel::{Hedge, Pipeline};

/// The pipeline of a client, and its hedge, which is around the pipeline. A [`Pipeline`] converts into it.
#[derive(Clone, Debug)]
pub struct ClientPolicies {
    pub(super) pipeline: Pipeline,
    pub(super) hedge: Option<Hedge>,
}

impl ClientPolicies {
    /// Makes slow calls again. The simulated requests may be repeated.
    #[must_use]
    pub fn hedge(mut self, hedge: Hedge) -> ClientPolicies {
        self.hedge = Some(hedge);
        self
    }
}

impl From<Pipeline> for ClientPolicies {
    fn from(pipeline: Pipeline) -> ClientPolicies {
        ClientPolicies { pipeline, hedge: None }
    }
}
