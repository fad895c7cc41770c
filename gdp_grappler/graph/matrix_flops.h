// FLOPs of linear algebra and of Fourier transforms, for which Grappler's
// estimator has no rules.
//
// Leading terms after Golub and Van Loan, "Matrix Computations", 4th edition:
// sections 3.2 (Lu), 4.2 (Cholesky), 5.2 (Qr), 7.5 (Eig), 8.3 (SelfAdjointEig),
// 8.6 (Svd); Higham, "Functions of Matrices", 6.2 and 10.3 (square root,
// exponential); 5 n log2 n for a complex transform of n numbers (Cooley and
// Tukey, 1965, radix 2), half of it for a real one.

#ifndef GDP_GRAPPLER_GRAPH_MATRIX_FLOPS_H_
#define GDP_GRAPPLER_GRAPH_MATRIX_FLOPS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "gdp_grappler/graph/shape_sizes.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/grappler/costs/op_performance_data.pb.h"

namespace tensorflow {
namespace grappler {

// FLOPs of ops on matrices, which are the last two dimensions of their inputs.
class MatrixArithmetic {
 public:
  explicit MatrixArithmetic(const OpInfo& op)
      : op_(op),
        rows_(FromLast(InputShape(op, 0), 1)),
        columns_(FromLast(InputShape(op, 0), 0)) {}

  // FLOPs of one execution; negative if there is no rule for the op.
  double Flops() const {
    static const auto* const rules = new std::unordered_map<std::string, Rule>{
        {"Cholesky", &MatrixArithmetic::Cubes<1, 3>},
        {"CholeskyGrad", &MatrixArithmetic::Cubes<2, 1>},
        {"Lu", &MatrixArithmetic::Cubes<2, 3>},
        {"MatrixDeterminant", &MatrixArithmetic::Cubes<2, 3>},
        {"LogMatrixDeterminant", &MatrixArithmetic::Cubes<2, 3>},
        {"MatrixInverse", &MatrixArithmetic::Cubes<2, 1>},
        {"MatrixSquareRoot", &MatrixArithmetic::Cubes<28, 1>},
        {"MatrixExponential", &MatrixArithmetic::Cubes<20, 1>},
        {"Eig", &MatrixArithmetic::Eigenvectors<10, 25>},
        {"SelfAdjointEig", &MatrixArithmetic::Cubes<9, 1>},
        {"SelfAdjointEigV2", &MatrixArithmetic::SymmetricEigenvectors},
        {"MatrixSolve", &MatrixArithmetic::Solve},
        {"MatrixTriangularSolve", &MatrixArithmetic::Substitute},
        {"MatrixSolveLs", &MatrixArithmetic::LeastSquares},
        {"Qr", &MatrixArithmetic::Qr},
        {"Svd", &MatrixArithmetic::Svd},
        {"TridiagonalSolve", &MatrixArithmetic::Tridiagonal},
        {"FFT", &MatrixArithmetic::Fourier<1>},
        {"IFFT", &MatrixArithmetic::Fourier<1>},
        {"FFT2D", &MatrixArithmetic::Fourier<2>},
        {"IFFT2D", &MatrixArithmetic::Fourier<2>},
        {"FFT3D", &MatrixArithmetic::Fourier<3>},
        {"IFFT3D", &MatrixArithmetic::Fourier<3>},
        {"RFFT", &MatrixArithmetic::OfReals<1>},
        {"IRFFT", &MatrixArithmetic::ToReals<1>},
        {"RFFT2D", &MatrixArithmetic::OfReals<2>},
        {"IRFFT2D", &MatrixArithmetic::ToReals<2>},
        {"RFFT3D", &MatrixArithmetic::OfReals<3>},
        {"IRFFT3D", &MatrixArithmetic::ToReals<3>},
        {"FFTND", &MatrixArithmetic::OfMany},
        {"IFFTND", &MatrixArithmetic::OfMany},
        {"RFFTND", &MatrixArithmetic::OfManyReals},
        {"IRFFTND", &MatrixArithmetic::ToManyReals}};
    const auto found = rules->find(op_.op());
    if (found == rules->end()) return -1;
    const double flops = (this->*found->second)();
    const bool transforms = op_.op().find("FFT") != std::string::npos;
    return IsComplex() && !transforms ? 4 * flops : flops;
  }

 private:
  using Rule = double (MatrixArithmetic::*)() const;

  const OpInfo& op_;
  // Sizes of each matrix of the first input; 0 if unknown.
  const double rows_, columns_;

  // n^3 times kNumerator / kDenominator for each matrix [n, n].
  template <int kNumerator, int kDenominator>
  double Cubes() const {
    return SizeOf(InputShape(op_, 0)) * columns_ * kNumerator / kDenominator;
  }

  // Only eigenvalues, or eigenvalues and eigenvectors.
  template <int kValues, int kVectors>
  double Eigenvectors() const {
    return Wants("compute_v") ? Cubes<kVectors, 1>() : Cubes<kValues, 1>();
  }
  double SymmetricEigenvectors() const {
    return Wants("compute_v") ? Cubes<9, 1>() : Cubes<4, 3>();
  }

  double Solve() const { return Cubes<2, 3>() + 2 * Substitute(); }
  // Each number of the output needs one row of a matrix.
  double Substitute() const { return SizeOf(OutputShape(op_, 0)) * columns_; }
  double LeastSquares() const {
    const double least = std::min(rows_, columns_);
    return SizeOf(InputShape(op_, 0)) * 2 *
           (least + 2 * FromLast(InputShape(op_, 1), 0));
  }

  // Reflections for R, and as many for the wanted part of Q.
  double Qr() const {
    const double least = std::min(rows_, columns_);
    const double most = std::max(rows_, columns_);
    const double reflections = 2 * least * least * (most - least / 3);
    return Matrices() * 2 * reflections;
  }
  double Svd() const {
    const double least = std::min(rows_, columns_);
    const double most = std::max(rows_, columns_);
    const double values = 4 * least * least * (most - least / 3);
    const double vectors = least * least * (14 * most + 8 * least);
    return Matrices() * (Wants("compute_uv") ? vectors : values);
  }
  // Thomas' algorithm: an elimination and a substitution. Each row waits for
  // three divisions that need the result of the row before. A division takes as
  // long as 20 operations. Meanwhile the processor computes the right sides.
  double Tridiagonal() const {
    const double sides = FromLast(InputShape(op_, 1), 0);
    const double numbers = SizeOf(InputShape(op_, 1));
    return sides > 0 ? numbers * (1 + 60 / sides) : 0;
  }
  double Matrices() const {
    return rows_ > 0 && columns_ > 0
               ? SizeOf(InputShape(op_, 0)) / (rows_ * columns_)
               : 0;
  }

  template <int kDims>
  double Fourier() const {
    return 5 * Transformed(OutputShape(op_, 0), kDims);
  }
  // Half the FLOPs of a complex transform, by the size of the real tensor.
  template <int kDims>
  double OfReals() const {
    const TensorShapeProto shape = Padded(kDims);
    return 2.5 * Transformed(&shape, kDims);
  }
  template <int kDims>
  double ToReals() const {
    return 2.5 * Transformed(OutputShape(op_, 0), kDims);
  }
  // Transforms of as many axes as there are lengths. The axes are only known in
  // a step.
  double OfMany() const {
    return 5 * Transformed(OutputShape(op_, 0), Lengths());
  }
  double OfManyReals() const {
    const TensorShapeProto shape = Padded(Lengths());
    return 2.5 * Transformed(&shape, Lengths());
  }
  double ToManyReals() const {
    return 2.5 * Transformed(OutputShape(op_, 0), Lengths());
  }
  int Lengths() const {
    return static_cast<int>(std::min(FromLast(InputShape(op_, 1), 0), 8.));
  }
  // The number of elements times the logarithm of the number of elements that
  // are transformed together.
  static double Transformed(const TensorShapeProto* shape, int dims) {
    double together = 1;
    for (int i = 0; i < dims; ++i) together *= FromLast(shape, i);
    return together > 0 ? SizeOf(shape) * std::log2(together) : 0;
  }

  // Shape of the first input, padded or cut to the lengths of the transform, if
  // these are known before a step.
  TensorShapeProto Padded(int dims) const {
    if (op_.inputs_size() == 0) return {};
    TensorShapeProto shape = op_.inputs(0).shape();
    const int first = shape.dim_size() - dims;
    Tensor lengths;
    if (first < 0 || op_.inputs_size() < 2 || !op_.inputs(1).has_value()) {
      return shape;
    }
    const TensorProto& value = op_.inputs(1).value();
    const TensorShapeProto& list = value.tensor_shape();
    if (value.dtype() != DT_INT32 || list.dim_size() != 1 ||
        list.dim(0).size() != dims || !lengths.FromProto(value)) {
      return shape;
    }
    for (int i = 0; i < dims; ++i) {
      shape.mutable_dim(first + i)->set_size(lengths.flat<int32_t>()(i));
    }
    return shape;
  }

  bool IsComplex() const {
    const auto type = op_.inputs_size() ? op_.inputs(0).dtype() : DT_INVALID;
    return type == DT_COMPLEX64 || type == DT_COMPLEX128;
  }

  bool Wants(const char* attribute) const {
    const auto found = op_.attr().find(attribute);
    return found == op_.attr().end() || found->second.b();
  }
};

}  // namespace grappler
}  // namespace tensorflow

#endif  // GDP_GRAPPLER_GRAPH_MATRIX_FLOPS_H_
