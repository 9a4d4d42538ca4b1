use super::*;
use crate::dispatch::backends;
use crate::matrix::blocked::tests::{add, thirds_add_up, values};

/// Computes the convolution by definition: seven loops.
fn slowly(shape: &Convolution, images: &[u64], filters: &[u64]) -> Vec<u64> {
    let [height, width] = shape.output();
    let channels = shape.in_channels / shape.groups;
    let filters_of_group = shape.out_channels / shape.groups;
    let mut out = Vec::new();
    for image in 0..shape.batch {
        for filter in 0..shape.out_channels {
            for i in 0..height {
                for j in 0..width {
                    let mut sum = 0u64;
                    for channel in 0..channels {
                        for y in 0..shape.kernel[0] {
                            for x in 0..shape.kernel[1] {
                                let row = (i * shape.stride[0] + y * shape.dilation[0]) as isize
                                    - shape.padding[0] as isize;
                                let column = (j * shape.stride[1] + x * shape.dilation[1]) as isize
                                    - shape.padding[1] as isize;
                                let inside = (0..shape.input[0] as isize).contains(&row)
                                    && (0..shape.input[1] as isize).contains(&column);
                                if inside {
                                    let source = filter / filters_of_group * channels + channel;
                                    let pixel = ((image * shape.in_channels + source)
                                        * shape.input[0]
                                        + row as usize)
                                        * shape.input[1]
                                        + column as usize;
                                    let weight = ((filter * channels + channel) * shape.kernel[0]
                                        + y)
                                        * shape.kernel[1]
                                        + x;
                                    sum = sum
                                        .wrapping_add(images[pixel].wrapping_mul(filters[weight]));
                                }
                            }
                        }
                    }
                    out.push(sum);
                }
            }
        }
    }
    out
}

const BASE: Convolution = Convolution {
    batch: 1,
    groups: 1,
    in_channels: 3,
    out_channels: 5,
    input: [9, 11],
    kernel: [3, 3],
    stride: [1, 1],
    padding: [1, 1],
    dilation: [1, 1],
};

fn shapes() -> Vec<Convolution> {
    vec![
        BASE,
        Convolution { batch: 0, ..BASE },
        Convolution { batch: 3, ..BASE },
        Convolution {
            kernel: [1, 1],
            padding: [0, 0],
            ..BASE
        },
        Convolution {
            kernel: [1, 1],
            padding: [0, 0],
            in_channels: 40,
            out_channels: 33,
            input: [8, 8],
            ..BASE
        },
        Convolution {
            kernel: [1, 1],
            padding: [0, 0],
            stride: [2, 3],
            ..BASE
        },
        Convolution {
            kernel: [1, 1],
            padding: [2, 3],
            ..BASE
        },
        Convolution {
            kernel: [1, 3],
            padding: [0, 1],
            input: [1, 30],
            ..BASE
        },
        Convolution {
            kernel: [3, 1],
            padding: [1, 0],
            input: [30, 1],
            ..BASE
        },
        Convolution {
            kernel: [2, 5],
            padding: [4, 7],
            ..BASE
        },
        // As many places as the kept positions allow, and more.
        Convolution {
            kernel: [8, 16],
            padding: [4, 8],
            batch: 2,
            ..BASE
        },
        Convolution {
            kernel: [13, 10],
            padding: [6, 5],
            batch: 2,
            ..BASE
        },
        Convolution {
            stride: [2, 2],
            ..BASE
        },
        Convolution {
            stride: [3, 2],
            dilation: [2, 3],
            padding: [3, 2],
            ..BASE
        },
        Convolution {
            dilation: [4, 5],
            ..BASE
        },
        Convolution {
            stride: [20, 20],
            padding: [0, 0],
            ..BASE
        },
        Convolution {
            groups: 2,
            in_channels: 4,
            out_channels: 6,
            batch: 2,
            ..BASE
        },
        Convolution {
            groups: 4,
            in_channels: 4,
            out_channels: 4,
            batch: 2,
            ..BASE
        },
        Convolution {
            groups: 4,
            in_channels: 4,
            out_channels: 12,
            stride: [2, 2],
            ..BASE
        },
        Convolution {
            groups: 32,
            in_channels: 32,
            out_channels: 32,
            input: [17, 40],
            ..BASE
        },
        Convolution {
            groups: 3,
            out_channels: 3,
            dilation: [2, 2],
            padding: [5, 1],
            stride: [2, 1],
            ..BASE
        },
        // A copy with its padding would be vast.
        Convolution {
            groups: 3,
            out_channels: 3,
            input: [3, 4],
            kernel: [2, 2],
            dilation: [40, 50],
            padding: [20, 25],
            ..BASE
        },
        Convolution {
            in_channels: 70,
            out_channels: 64,
            input: [14, 14],
            ..BASE
        },
        Convolution {
            in_channels: 3,
            out_channels: 16,
            input: [40, 40],
            kernel: [7, 7],
            stride: [2, 2],
            padding: [3, 3],
            ..BASE
        },
        Convolution {
            in_channels: 20,
            out_channels: 130,
            input: [4, 4],
            ..BASE
        },
        Convolution {
            in_channels: 1,
            out_channels: 1,
            input: [1, 1],
            ..BASE
        },
        Convolution {
            in_channels: 6,
            out_channels: 16,
            input: [14, 14],
            kernel: [5, 5],
            padding: [0, 0],
            batch: 4,
            ..BASE
        },
        Convolution {
            in_channels: 2,
            out_channels: 1,
            input: [0, 3],
            kernel: [1, 1],
            ..BASE
        },
        Convolution {
            input: [60, 70],
            in_channels: 2,
            out_channels: 9,
            ..BASE
        },
        // Small images side by side: more than one block of columns, with a shorter last one.
        Convolution {
            batch: 300,
            input: [3, 3],
            in_channels: 7,
            out_channels: 20,
            ..BASE
        },
        Convolution {
            batch: 19,
            groups: 2,
            input: [6, 5],
            in_channels: 8,
            out_channels: 34,
            padding: [1, 1],
            ..BASE
        },
    ]
}

#[test]
fn convolutions_of_many_shapes() {
    for shape in shapes() {
        assert_eq!(shape.validate(), Ok(()), "{shape:?}");
        let (images, filters) = (values(shape.input_len(), 1), values(shape.weight_len(), 2));
        let expected = slowly(&shape, &images, &filters);
        for backend in backends() {
            let mut out = vec![7; shape.output_len()];
            convolve_with(backend, &shape, &mut out, &[(&images, &filters)], None);
            assert!(out == expected, "{backend}: {shape:?}");
        }
    }
}

#[test]
fn random_shapes_agree_bit_for_bit() {
    let mut state = 1_u64;
    let mut below = |n: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let mut tried = 0;
    while tried < 400 {
        let groups = 1 + below(3);
        let shape = Convolution {
            batch: 1 + below(5),
            groups,
            in_channels: groups * (1 + below(4)),
            out_channels: groups * (1 + below(12)),
            input: [1 + below(14), 1 + below(30)],
            kernel: [1 + below(4), 1 + below(4)],
            stride: [1 + below(3), 1 + below(3)],
            padding: [below(4), below(4)],
            dilation: [1 + below(3), 1 + below(3)],
        };
        if shape.validate().is_err() {
            continue;
        }
        tried += 1;
        let (images, filters) = (values(shape.input_len(), 3), values(shape.weight_len(), 4));
        let expected = slowly(&shape, &images, &filters);
        for backend in backends() {
            let mut out = vec![7; shape.output_len()];
            convolve_with(backend, &shape, &mut out, &[(&images, &filters)], None);
            assert!(out == expected, "{backend}: {shape:?}");
        }
    }
}

#[test]
fn terms_add_up() {
    for shape in shapes() {
        let operands: Vec<_> = (0..2)
            .map(|t| {
                (
                    values(shape.input_len(), t),
                    values(shape.weight_len(), 5 + t),
                )
            })
            .collect();
        let terms: Vec<_> = operands
            .iter()
            .map(|(images, filters)| (&images[..], &filters[..]))
            .collect();
        let mut expected = slowly(&shape, terms[0].0, terms[0].1);
        let second = slowly(&shape, terms[1].0, terms[1].1);
        expected
            .iter_mut()
            .zip(second)
            .for_each(|(sum, x)| *sum = sum.wrapping_add(x));
        let mut out = vec![7; shape.output_len()];
        convolve(&shape, &mut out, &terms);
        assert!(out == expected, "{shape:?}");
        convolve(&shape, &mut out, &[]);
        assert!(out.iter().all(|word| *word == 0));
    }
}

#[test]
fn impossible_shapes_are_refused() {
    use ShapeError::{Groups, KernelTooLarge, TooLarge, Zero};
    let cases = [
        (Convolution { groups: 0, ..BASE }, Zero("groups")),
        (
            Convolution {
                stride: [1, 0],
                ..BASE
            },
            Zero("horizontal stride"),
        ),
        (
            Convolution {
                kernel: [0, 1],
                ..BASE
            },
            Zero("kernel height"),
        ),
        (
            Convolution {
                dilation: [0, 1],
                ..BASE
            },
            Zero("vertical dilation"),
        ),
        (
            Convolution { groups: 2, ..BASE },
            Groups {
                what: "input",
                channels: 3,
                groups: 2,
            },
        ),
        (
            Convolution { groups: 3, ..BASE },
            Groups {
                what: "output",
                channels: 5,
                groups: 3,
            },
        ),
        (
            Convolution {
                kernel: [3, 14],
                ..BASE
            },
            KernelTooLarge {
                what: "width",
                span: 14,
                padded: 13,
            },
        ),
        (
            Convolution {
                padding: [usize::MAX, 0],
                ..BASE
            },
            TooLarge("height"),
        ),
        (
            Convolution {
                dilation: [1, usize::MAX],
                ..BASE
            },
            TooLarge("width"),
        ),
        (
            Convolution {
                batch: usize::MAX,
                ..BASE
            },
            TooLarge("input"),
        ),
        (
            Convolution {
                batch: 1 << 40,
                out_channels: 1 << 30,
                ..BASE
            },
            TooLarge("output"),
        ),
    ];
    for (shape, error) in cases {
        assert_eq!(shape.validate(), Err(error));
    }
    let text = Convolution {
        kernel: [3, 14],
        ..BASE
    }
    .validate()
    .unwrap_err()
    .to_string();
    assert_eq!(
        text,
        "a kernel that spans 14 does not fit the padded width of 13"
    );
}

#[test]
#[should_panic(expected = "words of the convolution's input")]
fn a_wrong_length_is_refused() {
    let mut out = vec![0; BASE.output_len()];
    convolve(
        &BASE,
        &mut out,
        &[(&[1, 2, 3], &vec![0; BASE.weight_len()])],
    );
}

#[test]
fn thirds_add_up_to_the_convolution() {
    let Some(backend) = crate::matrix::blocked::tests::backend_of_thirds() else {
        return;
    };
    let blocked: Vec<_> = shapes().into_iter().filter(is_blocked).collect();
    assert!(blocked.len() > 5);
    for shape in blocked {
        let share = |n: usize, seed: u64| [0, 1, 2].map(|part| values(n, seed + part));
        let (x, y) = (share(shape.input_len(), 1), share(shape.weight_len(), 5));
        let mut expected = vec![0; shape.output_len()];
        for (images, filters) in x.iter().flat_map(|x| y.iter().map(move |y| (x, y))) {
            let mut one = vec![7; expected.len()];
            convolve(&shape, &mut one, &[(images, filters)]);
            add(&mut expected, &one);
        }
        let are = thirds_add_up(&x, &y, &expected, |_, third, parts, out| {
            convolve_with(backend, &shape, out, &parts, Some(third));
        });
        assert!(are, "{shape:?}");
    }
}
