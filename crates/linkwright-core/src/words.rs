//! Enums whose variants are words of files, options and columns.

/// Declare an enum with the word of each variant: `NAMES` and `ALL` in order, `name` of a variant, `from_name` of a word.
///
/// ```
/// linkwright_core::words! {
///     /// Which way to turn.
///     #[derive(Clone, Copy, Debug, PartialEq, Eq)]
///     pub enum Turn {
///         /// Towards the heart.
///         Left = "left",
///         /// Away from it.
///         Right = "right",
///     }
/// }
/// assert_eq!(Turn::from_name("right"), Some(Turn::Right));
/// assert_eq!(Turn::ALL.map(Turn::name), ["left", "right"]);
/// ```
#[macro_export]
macro_rules! words {
    ($(
        $(#[$of_enum:meta])*
        pub enum $enum:ident { $($(#[$of_variant:meta])* $variant:ident = $word:literal,)+ }
    )+) => {$(
        $(#[$of_enum])*
        pub enum $enum { $($(#[$of_variant])* $variant,)+ }

        impl $enum {
            /// The words of all variants, in order.
            pub const NAMES: [&'static str; [$($word),+].len()] = [$($word),+];

            /// All variants, in order.
            pub const ALL: [$enum; Self::NAMES.len()] = [$($enum::$variant),+];

            /// As written in files, options and columns.
            pub const fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }

            /// The variant of a word.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|known| known.name() == name)
            }
        }
    )+};
}
