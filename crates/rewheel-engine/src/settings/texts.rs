//! Texts of settings in JSON and TOML.

/// A backoff as text, which may name a custom backoff that this node does not know.
pub(super) mod stored_backoff {
    use rewheel::Backoff;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        backoff: &Backoff,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(backoff)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Backoff, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        Backoff::from_stored(&text).map_err(D::Error::custom)
    }
}

pub(super) mod some_duration {
    //! Serializes an optional duration.

    use rewheel::duration;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    #[derive(Deserialize)]
    struct Wrapped(#[serde(with = "duration::serde")] Duration);

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(in super::super) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => duration::serde::serialize(value, to),
            None => to.serialize_none(),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<Wrapped>::deserialize(from)?.map(|Wrapped(duration)| duration))
    }
}

pub(super) mod give_up {
    //! Serializes `on_give_up` for the API.

    use rewheel_core::GiveUp;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        value: &GiveUp,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(match value {
            GiveUp::Dead => "dead",
            GiveUp::Fail => "fail",
        })
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<GiveUp, D::Error> {
        match String::deserialize(from)?.as_str() {
            "dead" => Ok(GiveUp::Dead),
            "fail" => Ok(GiveUp::Fail),
            other => Err(D::Error::custom(format!("`{other}` is not valid: use `dead` or `fail`"))),
        }
    }
}

pub(super) mod on_dead {
    //! Serializes `on_dead` for the API.

    use rewheel_core::OnDead;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        value: &OnDead,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(value.as_str())
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<OnDead, D::Error> {
        match String::deserialize(from)?.as_str() {
            "continue" => Ok(OnDead::Continue),
            "block" => Ok(OnDead::Block),
            other => {
                Err(D::Error::custom(format!("`{other}` is not valid: use `continue` or `block`")))
            }
        }
    }
}
