//! How fast the convolution layers of six well-known networks are, by batch size.

use super::description::{Axis, AxisKind, Better, Derived, Description, Metric};

/// One layer: a square image, a square filter, padded so that the output is `ceil(input / stride)` wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer {
    /// `network.layer`, a word of the axis `layer`.
    pub key: &'static str,
    /// Rows and columns of the filter.
    pub filter: u64,
    /// Rows and columns of the input.
    pub input: u64,
    /// Channels of the input.
    pub in_channels: u64,
    /// Channels of the output.
    pub out_channels: u64,
    /// Step of the filter.
    pub stride: u64,
    /// Groups of channels that do not see each other.
    pub groups: u64,
}

impl Layer {
    /// Rows and columns of the output.
    pub fn output(&self) -> u64 {
        self.input.div_ceil(self.stride)
    }

    /// Floating-point operations of a batch: `2 O^2 F^2 (Ic / G) Oc batch`, the padded border counted too.
    pub fn flops(&self, batch: u64) -> u64 {
        let depth = self.in_channels / self.groups;
        2 * self.output().pow(2) * self.filter.pow(2) * depth * self.out_channels * batch
    }
}

/// The layer of this key.
pub fn layer_of(key: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| layer.key == key)
}

const fn layer(
    key: &'static str,
    filter: u64,
    input: u64,
    in_channels: u64,
    out_channels: u64,
    stride: u64,
    groups: u64,
) -> Layer {
    Layer {
        key,
        filter,
        input,
        in_channels,
        out_channels,
        stride,
        groups,
    }
}

/// Filter, input, input channels, output channels, stride and groups of table 5.3 of the source. Two rows of it are called
/// MaxPool, but state a filter with channels like all others, and are convolved like all others.
#[rustfmt::skip]
pub const LAYERS: &[Layer] = &[
    layer("resnext.conv1", 7, 224, 3, 64, 2, 1),
    layer("resnext.conv2_1", 3, 112, 64, 64, 2, 1),
    layer("resnext.conv2_2", 1, 56, 64, 128, 1, 32),
    layer("resnext.conv2_3", 3, 56, 128, 128, 1, 32),
    layer("resnext.conv2_4", 1, 56, 128, 256, 1, 32),
    layer("resnext.conv3_1", 1, 28, 256, 256, 1, 32),
    layer("resnext.conv3_2", 3, 28, 256, 256, 1, 32),
    layer("resnext.conv3_3", 1, 28, 256, 512, 1, 32),
    layer("resnext.conv4_1", 1, 14, 512, 512, 1, 32),
    layer("resnext.conv4_2", 3, 14, 512, 512, 1, 32),
    layer("resnext.conv4_3", 1, 14, 512, 1024, 1, 32),
    layer("resnext.conv5_1", 1, 7, 1024, 1024, 1, 32),
    layer("resnext.conv5_2", 3, 7, 1024, 1024, 1, 32),
    layer("resnext.conv5_3", 1, 7, 1024, 2048, 1, 32),
    layer("resnet50.conv1", 7, 224, 3, 64, 2, 1),
    layer("resnet50.conv2_1", 3, 112, 64, 64, 2, 1),
    layer("resnet50.conv2_2", 1, 56, 64, 64, 1, 1),
    layer("resnet50.conv2_3", 3, 56, 64, 64, 1, 1),
    layer("resnet50.conv2_4", 1, 56, 64, 256, 1, 1),
    layer("resnet50.conv3_1", 1, 28, 256, 128, 1, 1),
    layer("resnet50.conv3_2", 3, 28, 128, 128, 1, 1),
    layer("resnet50.conv3_3", 1, 28, 128, 512, 1, 1),
    layer("resnet50.conv4_1", 1, 14, 256, 256, 1, 1),
    layer("resnet50.conv4_2", 3, 14, 256, 256, 1, 1),
    layer("resnet50.conv4_3", 1, 14, 256, 1024, 1, 1),
    layer("resnet50.conv5_1", 1, 7, 512, 512, 1, 1),
    layer("resnet50.conv5_2", 3, 7, 512, 512, 1, 1),
    layer("resnet50.conv5_3", 1, 7, 512, 2048, 1, 1),
    layer("inception3.conv1", 3, 299, 3, 32, 2, 1),
    layer("inception3.conv2", 3, 149, 32, 32, 1, 1),
    layer("inception3.conv3", 3, 147, 32, 64, 1, 1),
    layer("inception3.conv4", 3, 147, 64, 64, 2, 1),
    layer("inception3.conv5", 3, 73, 64, 80, 1, 1),
    layer("inception3.conv6", 3, 71, 80, 192, 2, 1),
    layer("inception3.conv7", 3, 35, 192, 288, 1, 1),
    layer("inception3.conv8", 3, 35, 288, 768, 2, 1),
    layer("inception3.conv9", 3, 17, 768, 1280, 2, 1),
    layer("inception3.conv10", 3, 8, 1280, 2048, 1, 1),
    layer("vgg16.conv1_1", 3, 224, 3, 64, 1, 1),
    layer("vgg16.conv1_2", 3, 224, 64, 128, 1, 1),
    layer("vgg16.conv2_1", 3, 112, 128, 128, 1, 1),
    layer("vgg16.conv2_2", 3, 112, 128, 256, 1, 1),
    layer("vgg16.conv3_1", 3, 56, 256, 256, 1, 1),
    layer("vgg16.conv3_2", 3, 56, 256, 512, 1, 1),
    layer("vgg16.conv4_1", 3, 28, 512, 512, 1, 1),
    layer("vgg16.conv4_2", 3, 28, 512, 512, 1, 1),
    layer("vgg16.conv5_1", 3, 14, 512, 512, 1, 1),
    layer("ssd.conv1", 3, 38, 512, 1024, 2, 1),
    layer("ssd.conv2", 1, 19, 1024, 1024, 1, 1),
    layer("ssd.conv3", 1, 19, 1024, 512, 1, 1),
    layer("ssd.conv4", 3, 10, 512, 512, 2, 1),
    layer("ssd.conv5", 1, 10, 512, 128, 1, 1),
    layer("ssd.conv6", 3, 10, 128, 256, 2, 1),
    layer("ssd.conv7", 1, 5, 256, 128, 1, 1),
    layer("ssd.conv8", 3, 5, 128, 256, 1, 1),
    layer("ssd.conv9", 1, 3, 256, 128, 1, 1),
    layer("ssd.conv10", 3, 3, 128, 256, 1, 1),
    layer("alexnet.conv1", 11, 227, 3, 96, 4, 1),
    layer("alexnet.maxpool1", 3, 55, 96, 96, 2, 1),
    layer("alexnet.conv2", 5, 27, 96, 256, 1, 1),
    layer("alexnet.maxpool2", 3, 27, 256, 256, 2, 1),
    layer("alexnet.conv3", 3, 13, 256, 384, 1, 1),
    layer("alexnet.conv4", 3, 13, 384, 256, 1, 1),
    layer("alexnet.conv5", 3, 13, 256, 256, 2, 1),
];

/// The words of the axis `layer`.
const KEYS: [&str; LAYERS.len()] = {
    let mut keys = [""; LAYERS.len()];
    let mut i = 0;
    while i < keys.len() {
        keys[i] = LAYERS[i].key;
        i += 1;
    }
    keys
};

/// Forward convolution.
pub static CONVOLUTION: Description = Description {
    key: "convolution",
    summary: "forward convolution of 64 layers of six networks, by batch size and threads",
    description: "One operation is the forward convolution of a batch of images by one layer, padded so that the output \
                  is ceil(input / stride) wide. Operations are counted as 2 O^2 F^2 (Ic / G) Oc per image, whatever \
                  the method. Measured, it is onnxruntime on the processor with constant weights, in \
                  32-bit floats, 16-bit ones where it computes in them; on a GPU cuDNN, called by PyTorch.",
    axes: &[
        Axis::new("layer", AxisKind::Word(&KEYS), "network and layer", "resnet50.conv2_3"),
        Axis::new("batch", AxisKind::Count, "images at once", "1"),
        Axis::new("dtype", AxisKind::Word(&["f32", "tf32", "f16", "bf16"]), "data type of the elements; tf32 and bf16 on GPUs", "f32"),
        Axis::new("threads", AxisKind::Count, "endpoints that work on one batch", "1"),
    ],
    metrics: &[Metric::new("flop_rate", "Flop/s", Better::High, "counted operations over the time of one batch", Derived::WorkRate)],
    size_axis: None,
    table: "compute",
    source: "Jia, Tillman, Maggioni, Scarpazza, Dissecting the Graphcore IPU architecture via microbenchmarking \
             (2019), tables 5.3 to 5.5",
    waived: "where onnxruntime is not installed (it comes with the extra `compute`), the batch does not fit into \
             memory or one run into the time budget; f16 where onnxruntime converts to 32-bit floats; on a GPU without \
             PyTorch",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_counted() {
        assert_eq!(LAYERS.len(), 64);
        // 3 x 3 over 56 x 56 x 64 to 64 channels: 2 * 56^2 * 9 * 64 * 64.
        assert_eq!(layer_of("resnet50.conv2_3").unwrap().flops(1), 231_211_008);
        // Stride 2 of 149 gives 75, 32 groups of 128 channels see 4 each.
        assert_eq!(layer_of("inception3.conv4").unwrap().output(), 74);
        let grouped = layer_of("resnext.conv2_3").unwrap();
        assert_eq!(grouped.flops(2), 2 * 2 * 56 * 56 * 9 * 4 * 128);
    }
}
