//! A generic suite against plain arithmetic, which every protocol passes.

mod suite;

macro_rules! suite {
    ($protocol:ident: $($module:ident::{$($test:ident),* $(,)?}),* $(,)?) => {
        mod $protocol {
            $(mod $module {
                $(#[test]
                fn $test() {
                    crate::suite::$module::$test(stringify!($protocol));
                })*
            })*
        }
    };
}

/// Tests that take long among three parties, where every correlation takes transfers of three
/// pairs.
macro_rules! long_suite {
    ($protocol:ident: $($module:ident::{$($test:ident),* $(,)?}),* $(,)?) => {
        mod $protocol {
            $(mod $module {
                $(#[test]
                #[ignore = "long: a minute and more on all cores"]
                fn $test() {
                    crate::suite::$module::$test(stringify!($protocol));
                })*
            })*
        }
    };
}

macro_rules! for_every_protocol {
    ($($tests:tt)*) => {
        suite!(plain: $($tests)*);
        suite!(replicated: $($tests)*);
        suite!(replicated_malicious: $($tests)*);
        suite!(additive_2_dealer: $($tests)*);
        suite!(additive_3_dealer: $($tests)*);
        suite!(additive_5_dealer: $($tests)*);
        suite!(additive_2_ot: $($tests)*);
        suite!(attested_replicated: $($tests)*);
        suite!(attested_additive_2_dealer: $($tests)*);
        mod in_full {
            long_suite!(additive_2_he: $($tests)*);
        }
        long_suite!(additive_3_ot: $($tests)*);
        long_suite!(additive_3_he: $($tests)*);
        long_suite!(attested_replicated_malicious: $($tests)*);
        long_suite!(attested_additive_2_ot: $($tests)*);
    };
}

for_every_protocol! {
    inputs::{shares_and_reveals, public_values, bits},
    products::{integers, matrices, rows_by_themselves, convolutions, fixed_point},
    affine::{
        sums, named_operands_of_several_terms, rectified_sums, rectified_edges, rectified_whole_range, narrow_ends
    },
    truncation::{edges, every_small_value, exact_multiples, whole_range},
    comparison::{signs_at_every_width, signs_of_every_short_value, signs_of_many, zeros},
    binary::{ands, joins, takes_apart, puts_together, bit_products, bits_to_ring},
    functions::{relu, one_sided, maximum, low_bits, leading_zeros},
    integers::{quotients, quotients_by_what_is_known, comparisons},
    series::{values},
    cost::{declared_is_measured},
    compositions::{declared_is_measured},
    dropping::{bounds, bounds_of_sums, the_bound_is_reached, never_dearer},
    fibers::{results, rounds_are_shared, kept, failures, owned, panics},
}

// Encryption takes the place of transfers for products of matrices alone.
suite! {
    additive_2_he:
    inputs::{shares_and_reveals},
    products::{integers, matrices, rows_by_themselves, convolutions},
    affine::{sums, narrow_ends},
    comparison::{zeros},
    compositions::{declared_is_measured},
}

/// Tests for protocols that can guard comparisons.
mod guards {
    macro_rules! guards {
        ($($protocol:ident),*) => {
            $(mod $protocol {
                use crate::suite::guards;

                #[test]
                fn boundaries() {
                    guards::boundaries(stringify!($protocol));
                }

                #[test]
                fn reaches() {
                    guards::reaches(stringify!($protocol));
                }

                #[test]
                fn in_between() {
                    guards::in_between(stringify!($protocol));
                }

                #[test]
                fn sizes() {
                    guards::sizes(stringify!($protocol));
                }

                #[test]
                fn flags_stop_what_depends_on_them() {
                    guards::flags_stop_what_depends_on_them(stringify!($protocol));
                }

                #[test]
                fn flags_are_bits() {
                    guards::flags_are_bits(stringify!($protocol));
                }

                #[test]
                fn flags_without_an_answer_say_why() {
                    guards::flags_without_an_answer_say_why(stringify!($protocol));
                }

                #[test]
                fn a_thousand_overflows() {
                    guards::overflows(stringify!($protocol), 1000);
                }

                #[test]
                #[ignore = "long: minutes"]
                fn a_million_overflows() {
                    guards::overflows(stringify!($protocol), 1_000_000);
                }
            })*
        };
    }
    guards!(
        plain,
        replicated,
        replicated_malicious,
        additive_2_dealer,
        additive_3_dealer
    );
}

/// Tests for protocols that can check products.
mod checks {
    macro_rules! checks {
        ($($protocol:ident),*) => {
            $(mod $protocol {
                use crate::suite::{checks, overflows, ranges, residues};

                #[test]
                fn products() {
                    checks::products(stringify!($protocol), 10, 0);
                }

                #[test]
                fn single_overflows() {
                    overflows::single_overflows(stringify!($protocol));
                }

                #[test]
                fn changes_to_what_a_check_keeps_are_noticed() {
                    checks::changes_are_noticed(stringify!($protocol));
                }

                #[test]
                fn exact_ranges() {
                    ranges::exact_ranges(stringify!($protocol));
                }

                #[test]
                fn overflows_do_not_cancel() {
                    overflows::overflows_do_not_cancel(stringify!($protocol));
                }

                #[test]
                fn ranges() {
                    ranges::ranges(stringify!($protocol));
                }

                #[test]
                fn lifts() {
                    residues::lifts(stringify!($protocol));
                }

                #[test]
                fn products_of_residues() {
                    residues::products_of_residues(stringify!($protocol));
                }

                #[test]
                fn halved_overflows() {
                    overflows::halved_overflows(stringify!($protocol));
                }

                #[test]
                #[ignore = "long: minutes"]
                fn a_hundred_thousand_products() {
                    (1..=250).for_each(|seed| checks::products(stringify!($protocol), 10, seed));
                }
            })*
        };
    }
    checks!(
        plain,
        replicated,
        replicated_malicious,
        additive_2_dealer,
        additive_2_ot,
        additive_3_dealer,
        additive_5_dealer
    );
}

/// Guards of numbers that would cancel without coins.
mod guard_coins {
    macro_rules! guard_coins {
        ($($protocol:ident: $($test:ident),*;)*) => {
            $(mod $protocol {
                $(#[test]
                fn $test() {
                    crate::suite::guard_coins::$test(stringify!($protocol));
                })*
            })*
        };
    }
    guard_coins!(
        plain: numbers_do_not_cancel;
        replicated: numbers_do_not_cancel, looks_do_not_cancel;
        replicated_malicious: numbers_do_not_cancel, looks_at_shared_sums_do_not_cancel;
        additive_2_dealer: numbers_do_not_cancel, looks_do_not_cancel;
        additive_3_dealer: numbers_do_not_cancel, looks_do_not_cancel;
    );
}

// The statements of docs/internals/protocols.md about a ReLU.
mod relus {
    use crate::suite::cost::a_relu_is_as_written;

    #[test]
    fn replicated() {
        a_relu_is_as_written("replicated", [629, 8], [382 + 9, 7]);
    }

    #[test]
    fn additive_2_dealer() {
        a_relu_is_as_written("additive_2_dealer", [2 * 170, 6], [2 * 101, 5]);
    }

    #[test]
    fn additive_2_ot() {
        a_relu_is_as_written("additive_2_ot", [590, 8], [590, 8]);
    }
}

// The statements of docs/internals/protocols.md about checks.
mod costs_of_checks {
    use crate::suite::residues::costs_are_as_written;

    #[test]
    fn replicated() {
        let written = [[31, 1], [93, 1], [0, 0], [25, 1]];
        costs_are_as_written("replicated", written, 0);
    }

    #[test]
    fn replicated_malicious() {
        let written = [[162, 2], [93, 1], [31, 0], [63, 2]];
        costs_are_as_written("replicated_malicious", written, 3 * 128);
    }
}

// The reference rounds to the nearest; shares round at random.
mod rounding_at_random {
    macro_rules! unbiased {
        ($($protocol:ident),*) => {
            $(#[test]
            fn $protocol() {
                crate::suite::truncation::unbiased(stringify!($protocol));
            })*
        };
    }
    unbiased!(
        replicated,
        additive_2_dealer,
        additive_3_dealer,
        additive_5_dealer
    );

    use crate::suite::truncation::{By, Split, drift};
    use mpc::replicated::Replicated;

    /// The coins remove the bias if shares are structured. This is what the tests above would
    /// detect without them.
    #[test]
    fn without_coins_structured_shares_drift() {
        let splits = [Split::Trivial, Split::Shifted(15)];
        let value = [5, 1 << 15];
        testkit::run_opened(
            3,
            None,
            |mesh| Replicated::new(mesh.channel(0), testkit::device()),
            |p| {
                p.streams()[2].mute(|_| true);
                for split in splits {
                    assert!(
                        drift(p, By::Truncation, split, 16, value, 1000)? > 6.0,
                        "{split:?}"
                    );
                }
                Ok(())
            },
        );
        testkit::run_opened(
            2,
            Some(&testkit::deal),
            |mesh| mpc::open_exactly(mesh, testkit::device(), |_, _| ()),
            |p| {
                for split in splits {
                    let pairs = p.streams().iter_mut().flatten();
                    pairs.for_each(|pair| pair.mute(|_| true));
                    assert!(
                        drift(p, By::Truncation, split, 16, value, 1000)? > 6.0,
                        "{split:?}"
                    );
                }
                Ok(())
            },
        );
    }
}

/// After a toss, the coins that judge are not those that parties have from the beginning.
mod tossed_coins {
    use mpc::replicated::Replicated;
    use mpc::{Compared, Protocol, Recipient, Result, Tally};
    use testkit::{Shared, run_opened};

    /// Returns whether numbers out of range are detected.
    fn are_seen(p: &mut dyn Protocol, tosses: bool) -> Result<bool> {
        let x = Shared::input(p, 0, &[1 << 20; 5])?;
        if tosses {
            p.toss()?;
        }
        let mut tally: Option<Tally> = None;
        Shared::made(p, 5, |p, out| {
            tally = p.rectify(&x.slices(), None, Compared::guarded(12, 20)?, out)?;
            Ok(())
        })?;
        if tosses {
            p.toss()?;
        }
        let fit = p.in_range(&[&tally.expect("the ReLU is guarded")])?;
        let fit = p.reveal_bits(&fit, Recipient::All)?.expect("opened to all");
        Ok(fit[0] & 1 == 0)
    }

    /// A party that knew the session's coins could choose numbers that they do not detect. Here the
    /// coins are all zero, and detect nothing.
    #[test]
    fn see_what_coins_that_were_known_before_do_not() {
        let with = |tosses: bool| {
            let of_three = run_opened(
                3,
                None,
                |mesh| Replicated::new(mesh.channel(0), testkit::device()),
                |p| {
                    p.streams()[2].mute(|_| true);
                    are_seen(p, tosses)
                },
            );
            let of_three_that_prove = run_opened(
                3,
                None,
                |mesh| Replicated::malicious(mesh.channel(0), testkit::device()),
                |p| {
                    p.streams()[2].mute(|_| true);
                    are_seen(p, tosses)
                },
            );
            let of_two = run_opened(
                2,
                Some(&testkit::deal),
                |mesh| mpc::open_exactly(mesh, testkit::device(), |_, _| ()),
                |p| {
                    p.coins().mute(|_| true);
                    are_seen(p, tosses)
                },
            );
            [of_three, of_three_that_prove, of_two].concat()
        };
        assert_eq!(with(false), [false; 8]);
        assert_eq!(with(true), [true; 8]);
    }
}

/// Products are evaluated by thirds if all parties can, and in the usual way if one cannot.
mod thirds {
    use kernels::convolution::Convolution;
    use kernels::third::Thirds;
    use mpc::replicated::Replicated;
    use mpc::{Bilinear, Result, Shift};
    use testkit::{Random, Shared, run_opened};

    fn maps() -> [Bilinear; 3] {
        let (batch, m, k, n) = (2, 11, 300, 17);
        [
            Bilinear::Matrix { batch, m, k, n },
            Bilinear::ByTransposed { batch, m, k, n },
            Bilinear::Convolution(Convolution {
                batch,
                groups: 1,
                in_channels: 30,
                out_channels: 8,
                input: [6, 7],
                kernel: [3, 3],
                stride: [1, 2],
                padding: [1, 1],
                dilation: [1, 1],
            }),
        ]
    }

    fn check(says: [Thirds; 3], map: &Bilinear, shift: Option<Shift>) {
        let (left, right, _) = map.lengths();
        let mut random = Random::new(5);
        // Numbers that fit the range of a truncation, or whole words.
        let mut words = |n: usize| -> Vec<u64> {
            let numbers = (0..n).map(|_| random.signed(24) as u64).collect();
            if shift.is_some() {
                numbers
            } else {
                random.words(n)
            }
        };
        let (x, y) = (words(left), words(right));
        let opened: Vec<Vec<u64>> = run_opened(
            3,
            None,
            |mesh| {
                let says = says[mesh.party()];
                Replicated::with_thirds(mesh.channel(0), testkit::device(), says)
            },
            |p| -> Result<Vec<u64>> {
                let (x, y) = (Shared::input(p, 0, &x)?, Shared::input(p, 1, &y)?);
                x.bilinear(p, map, &y, shift)?.open(p)
            },
        );
        let mut plain = vec![0; map.lengths().2];
        map.evaluate(&mut plain, &[(&x, &y)]);
        for opened in &opened {
            for (found, exact) in opened.iter().zip(&plain) {
                let Some(shift) = shift else {
                    assert_eq!(found, exact, "{map:?}, {says:?}");
                    continue;
                };
                let (found, exact) = (*found as i64, *exact as i64 >> shift.bits());
                assert!((-1..=1).contains(&(found - exact)), "{map:?}, {says:?}");
            }
        }
    }

    #[test]
    fn whoever_has_them() {
        let has = testkit::device().thirds();
        let [all, narrow, none] = [3, 2, 0].map(Thirds::of_word);
        for says in [
            [has; 3],
            [all, none, all],
            [all, all, none],
            [none; 3],
            // One party can only do whole thirds, one only narrow ones: nothing that all can do.
            [Thirds::of_word(1), narrow, all],
            // As on machines with tiles of bytes.
            [
                has,
                Thirds {
                    whole: false,
                    ..has
                },
                has,
            ],
        ] {
            for map in maps() {
                assert!(map.has_thirds());
                check(says, &map, None);
                check(says, &map, Shift::new(16));
                check(says, &map, Shift::new(16).and_then(Shift::of_narrow));
            }
        }
    }

    #[test]
    fn elementwise_and_thin_products_have_none() {
        let (batch, m, k, n) = (1, 1, 300, 17);
        for map in [
            Bilinear::Elementwise { n },
            Bilinear::Matrix { batch, m, k, n },
            Bilinear::ByTransposed { batch, m, k, n },
        ] {
            assert!(!map.has_thirds());
        }
    }
}
