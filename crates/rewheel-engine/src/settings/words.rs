//! Serializes settings that are one of a few words.

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
            other => Err(D::Error::custom(format!("`{other}` is not `continue` or `block`"))),
        }
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
            other => Err(D::Error::custom(format!("`{other}` is not `dead` or `fail`"))),
        }
    }
}
