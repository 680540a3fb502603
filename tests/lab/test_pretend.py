"""The pretended device refuses what CUDA refuses, allows what CUDA allows, and computes what the CPU computes."""

import numpy as np
import pretend
import pytest
import torch
from torch.utils.checkpoint import checkpoint

from derived.lab.rng import stream

TWO_DEVICES = "Expected all tensors to be on the same device"


@pytest.fixture
def device():
    with pretend.device() as (device, _):
        yield device


@pytest.fixture
def here() -> torch.Tensor:
    return torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)


@pytest.fixture
def there(here, device) -> torch.Tensor:
    return here.to(device)


def test_a_tensor_goes_there_and_comes_back(here, there, device):
    assert (there.device.type, there.is_cpu, here.is_cpu) == ("pretend", False, True)
    assert there.to(device) is there
    assert torch.equal(there.cpu(), here)
    assert there.cpu().is_cpu
    assert torch.equal(torch.empty_like(here).copy_(there), here)


@pytest.mark.parametrize(
    "operation",
    [
        lambda there, here: there * here,
        lambda there, here: here * there,
        lambda there, here: there @ here,
        lambda there, here: torch.where(here > 0, there, 0.0),
        lambda there, here: torch.cat([there, here]),
        lambda there, here: torch.stack([there[0], here[0]]),  # not even without dimensions
        lambda there, here: there[0] * here,
        lambda there, here: there.add_(here),
        lambda there, here: here[0].add_(there[0]),  # what is written stays on its own device
        lambda there, here: there.masked_fill_(here > 0, 0.0),
        lambda there, here: there.gather(0, torch.tensor([0])),
        lambda there, here: there.index_select(0, torch.tensor([0])),
        lambda there, here: there.index_put_((torch.tensor([0, 2]),), here[:2]),
    ],
)
def test_tensors_of_two_devices_do_not_meet(operation, here, there):
    with pytest.raises(RuntimeError, match=TWO_DEVICES):
        operation(there, here)


def test_a_cpu_tensor_is_not_indexed_from_there(here, device):
    for index in (torch.tensor([0], device=device), torch.ones(3, dtype=torch.bool, device=device)):
        with pytest.raises(RuntimeError, match="indices should be either on cpu"):
            here[index]


@pytest.mark.parametrize(
    "operation",
    [
        lambda x, scalar, index: x * scalar,
        lambda x, scalar, index: scalar - x,
        lambda x, scalar, index: x.clone().add_(scalar),
        lambda x, scalar, index: torch.where(x > 0, x, scalar),
        lambda x, scalar, index: x.masked_fill(x > 0, scalar),
        lambda x, scalar, index: x.clone().fill_(scalar),
        lambda x, scalar, index: x[index],
        lambda x, scalar, index: x[index > 0],
        lambda x, scalar, index: x.index_put((index,), scalar),
    ],
)
def test_cpu_tensors_without_dimensions_and_cpu_indices_are_allowed(operation, here, there):
    scalar, index = torch.tensor(2.0, dtype=torch.float64), torch.tensor([2, 0, 1])
    found = operation(there, scalar, index)
    assert found.device.type == "pretend"
    assert torch.equal(found.cpu(), operation(here, scalar, index))


def test_rows_of_the_cpu_are_copied_into_a_slice(here, there):
    there[:2] = here[1:]
    assert there.tolist() == [-2.0, 3.0, 3.0]


@pytest.mark.parametrize("convert", [lambda x: x.numpy(), torch.Tensor.numpy, np.asarray, np.log])
def test_it_is_no_numpy_array(convert, there):
    with pytest.raises(TypeError, match=r"Use Tensor\.cpu"):
        convert(there)


def test_single_numbers_are_read_from_it(here, there):
    assert (there[0].item(), float(there[1]), bool(there[0] > 0), int(there.argmax())) == (1.0, -2.0, True, 2)
    assert list(map(torch.Tensor.tolist, (here, there))) == [here.tolist()] * 2
    assert (there.tolist(), f"{there[0]:.2f}", len(there)) == (here.tolist(), "1.00", 3)
    assert repr(there) == f"{here!r} on pretend:0"


@pytest.mark.parametrize(
    "factory",
    [
        lambda **where: torch.zeros(3, **where),
        lambda **where: torch.ones(2, 3, **where),
        lambda **where: torch.full((3,), 2.0, **where),
        lambda **where: torch.eye(3, **where),
        lambda **where: torch.arange(3, **where),
        lambda **where: torch.linspace(0, 1, 5, **where),
        lambda **where: torch.logspace(0, 1, 5, **where),
        lambda **where: torch.tril_indices(3, 3, **where),
        lambda **where: torch.tensor([1.0, 2.0], **where),
        lambda **where: torch.as_tensor([1.0, 2.0], **where),
        lambda **where: torch.tensor([torch.ones((), **where), torch.zeros((), **where)], **where),
        lambda **where: torch.ones_like(torch.zeros(3), **where),
        lambda **where: torch.zeros(3, **where).new_ones(2),
    ],
)
def test_factories_make_tensors_there(factory, device):
    found = factory(device=device)
    assert found.device.type == "pretend"
    assert torch.equal(found.cpu(), factory())


def test_a_generator_draws_on_its_own_device(here, there, device):
    draw = stream(0, "draws", device=device)
    assert draw.device == device
    found = torch.randn(5, generator=draw, device=device)
    assert torch.equal(found.cpu(), torch.randn(5, generator=stream(0, "draws")))
    own = stream(0, "draws")
    for refused in (
        lambda: torch.rand(3, generator=own, device=device),
        lambda: there.normal_(generator=own),
        lambda: torch.multinomial(there.abs(), 1, generator=own),
        lambda: torch.rand(3, generator=draw),
        lambda: here.normal_(generator=draw),
    ):
        with pytest.raises(RuntimeError, match="device type for generator but found"):
            refused()


def attention(x: torch.Tensor) -> torch.Tensor:
    rows = x.reshape(1, 1, 3, 1)
    return torch.nn.functional.scaled_dot_product_attention(rows, rows, rows, is_causal=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.softmax(x, dim=-1).square(),
        lambda x: torch.einsum("i,j->ij", x, x).tril(),
        attention,
        lambda x: checkpoint(torch.cos, x * x, use_reentrant=False),
        lambda x: torch.autograd.grad(x.pow(3), x, torch.eye(3).to(x), is_grads_batched=True, create_graph=True)[0],
        lambda x: torch.func.vmap(torch.func.grad(torch.sin))(x),
        lambda x: x.cpu() * x.cpu(),
    ],
)
def test_gradients_are_the_cpus(function, here, there):
    here.requires_grad_()
    there.requires_grad_()
    for x in (here, there):
        function(x).sum().backward()
    assert there.grad.device == there.device
    # The CPU has two kernels of attention. Scores up to 9 part their weights by 18 eps, which values up to 3 multiply.
    assert (there.grad.cpu() - here.grad).abs().max() <= 64 * torch.finfo(here.dtype).eps


def test_gradients_cross_to_the_cpu(here, device):
    here.requires_grad_()
    here.to(device).square().sum().backward()
    assert torch.equal(here.grad, 2 * here.detach())


class _Forgetful(torch.autograd.Function):
    """Twice x, whose way back makes a tensor on the CPU."""

    @staticmethod
    def forward(context, x):
        return 2 * x

    @staticmethod
    def backward(context, gradient):
        return torch.full(gradient.shape, 2.0) * gradient


def test_a_mixture_on_the_way_back_raises(there):
    with pytest.raises(RuntimeError, match=TWO_DEVICES):
        _Forgetful.apply(there.requires_grad_()).sum().backward()


def test_a_module_goes_there(here, there, device):
    module = torch.nn.Linear(3, 2, dtype=torch.float64)
    expected = module(here)
    with pytest.raises(RuntimeError, match=TWO_DEVICES):
        module(there)
    assert torch.allclose(module.to(device)(there).cpu(), expected, rtol=1e-15)


def test_another_shape_in_place_is_beyond_it(there):
    with pytest.raises(NotImplementedError, match="another shape"):
        there.unsqueeze_(0)


def test_tensors_made_there_are_counted(here):
    with pretend.device() as (device, made):
        assert made.count == 0
        torch.ones(3) * here
        assert made.count == 0
        torch.ones(3, device=device)
        assert made.count == 1
        here.to(device) * 2
        assert made.count == 3
    with pretend.device() as (_, made):
        assert made.count == 0


def test_generators_are_torchs_own_again_outside():
    with pretend.device():
        assert torch.Generator is pretend.PretendGenerator
    assert torch.Generator is torch._C.Generator
